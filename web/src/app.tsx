// The frame around the pages: navigation under the thumb, banners, and a net below each page that fails.

import { Component, type ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isShared } from "./pure/share";
import { askServer, server } from "./store/about";
import { differs, scanned } from "./store/certificate";
import { storeState } from "./store/database";
import { key } from "./store/key";
import { useObservable } from "./store/observable";
import { S } from "./strings";
import { Matrix } from "./views/matrix";
import { Quick } from "./views/quick";
import { Results } from "./views/results";
import { ServerView } from "./views/serverView";
import { Walk } from "./views/walk";

type Page = keyof typeof S.pages;
const PAGES = Object.keys(S.pages) as Page[];

export function App() {
  const [fragment, setFragment] = useState(location.hash);
  useEffect(() => {
    const changed = () => setFragment(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  const shared = isShared(fragment) ? fragment : undefined;
  const page = shared === undefined ? pageOf(fragment) : "results";
  return (
    <>
      <a class="skip" href="#main" onClick={toMain}>
        {S.skip}
      </a>
      <header class="top">
        <a class="brand" href="#test">
          {S.name}
        </a>
      </header>
      <nav aria-label={S.navigation}>
        {PAGES.map((each) => (
          <a key={each} href={`#${each}`} {...(each === page ? { "aria-current": "page" as const } : {})}>
            <Icon page={each} />
            <span>{S.pages[each]}</span>
          </a>
        ))}
      </nav>
      <main id="main" tabIndex={-1}>
        <Banners />
        <Net key={page + (shared ?? "")}>
          {page === "test" && <Quick />}
          {page === "matrix" && <Matrix />}
          {page === "walk" && <Walk />}
          {page === "results" && <Results key={shared ?? ""} shared={shared} />}
          {page === "server" && <ServerView />}
        </Net>
      </main>
    </>
  );
}

/** The fragment names the page, so the skip link moves the focus itself. */
function toMain(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function pageOf(fragment: string): Page {
  return PAGES.find((page) => fragment === `#${page}`) ?? "test";
}

function Banners() {
  const known = useObservable(server);
  const store = useObservable(storeState);
  const given = useObservable(key);
  return (
    <div role="status">
      {known.state === "silent" && (
        <p class="banner">
          {S.banner.silent}{" "}
          <button type="button" onClick={() => void askServer()}>
            {S.banner.retry}
          </button>
        </p>
      )}
      {known.state === "here" && known.about.key && given === "" && (
        <p class="banner">
          {S.banner.key} <a href="#server">{S.pages.server}</a>
        </p>
      )}
      {known.state === "here" && differs(scanned, known.about.certificate) && <p class="banner">{S.server.certificateDiffers}</p>}
      {(store === "memoryOnly" || store === "full") && <p class="banner">{S.banner[store]}</p>}
    </div>
  );
}

class Net extends Component<{ children: ComponentChildren }, { failed: boolean }> {
  override state = { failed: false };

  static override getDerivedStateFromError() {
    return { failed: true };
  }

  override render() {
    return this.state.failed ? (
      <p class="banner" role="alert">
        {S.broken}
      </p>
    ) : (
      this.props.children
    );
  }
}

const ICONS: Record<Page, string> = {
  test: "M4 16a8 8 0 1 1 16 0M12 16l4-6",
  matrix: "M4 4h6v6H4zM14 4h6v6h-6zM4 14h6v6H4zM14 14h6v6h-6z",
  walk: "M12 21s-6-6-6-11a6 6 0 0 1 12 0c0 5-6 11-6 11zM12 12a2 2 0 1 0 0-4 2 2 0 0 0 0 4",
  results: "M5 20V11M12 20V4M19 20v-6",
  server: "M4 5h16v5H4zM4 14h16v5H4zM8 7.5h.01M8 16.5h.01",
};

function Icon({ page }: { page: Page }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={ICONS[page]} />
    </svg>
  );
}
