//! The page: three files in the program, nothing from elsewhere.

use std::sync::Arc;

use axum::Router;
use axum::http::header;
use axum::routing::get;

use crate::shared::Shared;

pub(super) fn routes() -> Router<Arc<Shared>> {
    let file = |kind: &'static str, text: &'static str| {
        get(move || async move { ([(header::CONTENT_TYPE, kind)], text) })
    };
    Router::new()
        .route("/", file("text/html; charset=utf-8", include_str!("../../page/index.html")))
        .route("/page.js", file("text/javascript; charset=utf-8", include_str!("../../page/page.js")))
        .route("/page.css", file("text/css; charset=utf-8", include_str!("../../page/page.css")))
}
