//! The page: files built from `web/` and embedded, so that the binary needs nothing beside it.

use axum::body::Body;
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use super::problem;

/// Path, type, content.
type Asset = (&'static str, &'static str, &'static [u8]);

macro_rules! assets {
    ($($path:literal $type:literal $file:literal)*) => {
        const ASSETS: &[Asset] = &[$((
            $path,
            $type,
            include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../web/dist/", $file)),
        )),*];
    };
}

assets! {
    "/" "text/html; charset=utf-8" "index.html"
    "/app.js" "text/javascript; charset=utf-8" "app.js"
    "/worker.js" "text/javascript; charset=utf-8" "worker.js"
    "/sw.js" "text/javascript; charset=utf-8" "sw.js"
    "/style.css" "text/css; charset=utf-8" "style.css"
    "/manifest.webmanifest" "application/manifest+json" "manifest.webmanifest"
    "/icon.svg" "image/svg+xml" "icon.svg"
    "/icon-192.png" "image/png" "icon-192.png"
    "/icon-512.png" "image/png" "icon-512.png"
}

/// The file of that path; the page itself knows no others, so nothing is looked up anywhere.
pub(super) async fn serve(method: Method, uri: Uri) -> Response {
    let found = ASSETS.iter().find(|(path, ..)| *path == uri.path());
    match found {
        Some((_, kind, content)) if method == Method::GET || method == Method::HEAD => {
            // The service worker keeps what is needed without a network; here it has to be asked whether it is new.
            let headers = [(header::CONTENT_TYPE, *kind), (header::CACHE_CONTROL, "no-cache")];
            (headers, Body::from(*content)).into_response()
        }
        Some(_) => problem(StatusCode::METHOD_NOT_ALLOWED, "this can only be read"),
        None => problem(StatusCode::NOT_FOUND, "there is nothing here"),
    }
}
