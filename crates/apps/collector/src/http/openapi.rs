//! The API's description (OpenAPI 3.1).

#[cfg(feature = "schema")]
mod derived;

use axum::http::header;
use axum::response::IntoResponse;

#[cfg(feature = "schema")]
pub use derived::derived_openapi;

/// The whole document, as `dev/schemas` derives it from the types that are served.
pub const OPENAPI: &str = include_str!("../../openapi.json");

pub(super) async fn serve() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI)
}
