//! The page: files built from `web/` and embedded, so that the binary needs nothing beside it.
//!
//! Their names do not change with their content, so a browser asks each time whether what it has is
//! still right (RFC 9110 §13.1.2) and mostly hears that it is. Text travels compressed; that is
//! done once in a process, when somebody first asks.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::sync::OnceLock;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::problem;

struct Asset {
    path: &'static str,
    kind: &'static str,
    content: &'static [u8],
    packed: OnceLock<Packed>,
}

/// What is sent of an asset.
struct Packed {
    /// Of the content; the compressed form has one of its own.
    tag: String,
    /// Absent where it would save nothing.
    gzip: Option<Bytes>,
}

macro_rules! assets {
    ($($path:literal $kind:literal $file:literal)*) => {
        static ASSETS: [Asset; [$($path),*].len()] = [$(Asset {
            path: $path,
            kind: $kind,
            content: include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../web/dist/", $file)),
            packed: OnceLock::new(),
        }),*];
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

impl Asset {
    fn packed(&self) -> &Packed {
        self.packed.get_or_init(|| {
            let mut digest = DefaultHasher::new();
            self.content.hash(&mut digest);
            Packed { tag: format!("{:016x}", digest.finish()), gzip: gzip(self.content) }
        })
    }
}

/// `None` where less than a tenth would be saved, as with pictures.
fn gzip(content: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).ok()?;
    let packed = encoder.finish().ok()?;
    (packed.len() < content.len() / 10 * 9).then(|| packed.into())
}

/// The file of that path; the page itself knows no others, so nothing is looked up anywhere.
pub(super) async fn serve(method: Method, uri: Uri, asked: HeaderMap) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.path == uri.path()) else {
        return problem(StatusCode::NOT_FOUND, "there is nothing here");
    };
    if method != Method::GET && method != Method::HEAD {
        return problem(StatusCode::METHOD_NOT_ALLOWED, "this can only be read");
    }
    // The first time takes some milliseconds, and this thread serves everybody.
    if asset.packed.get().is_none() && tokio::task::spawn_blocking(|| asset.packed()).await.is_err() {
        return problem(StatusCode::INTERNAL_SERVER_ERROR, "the file could not be compressed");
    }
    answer(asset, &asked)
}

fn answer(asset: &Asset, asked: &HeaderMap) -> Response {
    let packed = asset.packed();
    let gzip = packed.gzip.as_ref().filter(|_| takes_gzip(asked));
    let tag = format!("\"{}{}\"", packed.tag, if gzip.is_some() { "-gzip" } else { "" });
    let is_known = words(asked, header::IF_NONE_MATCH).any(|known| known.trim_start_matches("W/") == tag);
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let body = gzip.map_or_else(|| Body::from(asset.content), |gzip| Body::from(gzip.clone()));
        ([(header::CONTENT_TYPE, asset.kind)], body).into_response()
    };
    let headers = response.headers_mut();
    if gzip.is_some() && !is_known {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

/// RFC 9110 §12.5.3; a weight of nought is a refusal.
fn takes_gzip(asked: &HeaderMap) -> bool {
    words(asked, header::ACCEPT_ENCODING).any(|word| {
        let (name, weight) = word.split_once(';').unwrap_or((word, "q=1"));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.trim().parse::<f32>().ok());
        matches!(name.trim(), "gzip" | "x-gzip" | "*") && weight.is_none_or(|weight| weight > 0.0)
    })
}

/// Of a list in one header or several.
fn words(headers: &HeaderMap, name: header::HeaderName) -> impl Iterator<Item = &str> {
    let values = headers.get_all(name).into_iter();
    values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn ask(path: &str, headers: &[(header::HeaderName, &str)]) -> Response {
        let asset = ASSETS.iter().find(|asset| asset.path == path).unwrap();
        let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        answer(asset, &headers)
    }

    fn header_of(response: &Response, name: header::HeaderName) -> &str {
        response.headers().get(name).map_or("", |value| value.to_str().unwrap())
    }

    #[test]
    fn the_whole_page_is_at_most_150_kib_on_the_way_and_comes_back_as_it_was() {
        let mut total = 0;
        for asset in &ASSETS {
            let Some(gzip) = &asset.packed().gzip else {
                total += asset.content.len();
                continue;
            };
            total += gzip.len();
            let mut back = Vec::new();
            flate2::read::GzDecoder::new(&gzip[..]).read_to_end(&mut back).unwrap();
            assert!(back == asset.content, "{}", asset.path);
        }
        assert!(total <= 150 << 10, "{total} bytes");
    }

    #[test]
    fn text_is_compressed_for_those_who_take_it() {
        for (accepts, encoding) in [
            ("gzip, deflate, br, zstd", "gzip"),
            ("*", "gzip"),
            ("gzip;q=0.5", "gzip"),
            ("br, gzip;q=0", ""),
            ("identity", ""),
        ] {
            let response = ask("/app.js", &[(header::ACCEPT_ENCODING, accepts)]);
            assert_eq!(header_of(&response, header::CONTENT_ENCODING), encoding, "{accepts}");
            assert_eq!(header_of(&response, header::VARY), "Accept-Encoding");
        }
        let picture = ask("/icon-512.png", &[(header::ACCEPT_ENCODING, "gzip")]);
        assert_eq!(header_of(&picture, header::CONTENT_ENCODING), "");
    }

    #[test]
    fn what_a_browser_has_is_not_sent_again_and_each_form_has_a_tag_of_its_own() {
        let gzip = (header::ACCEPT_ENCODING, "gzip");
        let tags = [ask("/", std::slice::from_ref(&gzip)), ask("/", &[])]
            .map(|response| header_of(&response, header::ETAG).to_owned());
        assert_ne!(tags[0], tags[1]);
        let known = format!("\"other\", W/{}", tags[0]);
        let again = ask("/", &[gzip.clone(), (header::IF_NONE_MATCH, &known)]);
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(header_of(&again, header::ETAG), tags[0]);
        assert_eq!(ask("/", &[(header::IF_NONE_MATCH, &known)]).status(), StatusCode::OK);
    }
}
