// What this server is and allows, and what a secure connection would add.

import { askServer, server, type About } from "../store/about";
import { useObservable } from "../store/observable";
import { showRate, showSize, showSpan } from "../pure/units";
import { S } from "../strings";
import { differs, inPairs, scanned } from "../store/certificate";
import { Owner } from "./ownerView";
import { Facts } from "./recordView";

export function ServerView() {
  const known = useObservable(server);
  return (
    <>
      <h1>{S.server.title}</h1>
      <section class="card">
        {known.state === "here" ? <About about={known.about} /> : <p role="status">{known.state === "asking" ? S.server.asking : S.banner.silent}</p>}
        <div class="buttons">
          <button type="button" onClick={() => void askServer()}>
            {S.server.refresh}
          </button>
        </div>
      </section>
      {known.state === "here" && <Owner wantsKey={known.about.key} />}
      <section class="card quiet">
        <h2>{S.server.about}</h2>
        <p>{S.server.aboutText}</p>
      </section>
    </>
  );
}

function About({ about }: { about: About }) {
  return (
    <Facts
      rows={[
        [S.server.software, about.software],
        [S.server.host, about.host],
        [S.server.addresses, about.addresses.map((address) => <div key={address}>{address}</div>)],
        [S.server.caps, capsOf(about)],
        [S.server.results, S.server.keeping[about.results]],
        [S.server.datagrams, about.datagrams.length > 0 ? about.datagrams.map((name) => S.server.transports[name] ?? name).join(", ") : S.server.noDatagrams],
        [S.server.secure, secureText()],
        ...certificate(about),
      ]}
    />
  );
}

/** Over TLS a browser may still withhold what needs a secure context, where a person has waved its warning away. */
function secureText(): string {
  if (!window.isSecureContext) return S.server.secureNo;
  return location.protocol === "https:" ? S.server.secureTls : S.server.secureHost;
}

function certificate(about: About): [string, preact.ComponentChildren][] {
  const rows: [string, preact.ComponentChildren][] = [];
  if (scanned) rows.push([S.server.scanned, <code class="digest">{inPairs(scanned)}</code>]);
  if (about.certificate) rows.push([S.server.claimed, <code class="digest">{inPairs(about.certificate)}</code>]);
  if (rows.length > 0) rows.push([S.server.compare, differs(scanned, about.certificate) ? S.server.certificateDiffers : S.server.compareText]);
  return rows;
}

function capsOf({ limits }: About): string {
  const { cap } = S.server;
  const told = [
    limits.duration === null ? "" : `${cap.duration} ${showSpan(limits.duration)}`,
    limits.rate === null ? "" : `${cap.rate} ${showRate(limits.rate)}`,
    limits.bytes === null ? "" : `${cap.bytes} ${showSize(limits.bytes)}`,
    limits.streams === null ? "" : `${cap.streams} ${limits.streams}`,
  ];
  return told.filter((text) => text !== "").join(", ") || S.server.noCaps;
}
