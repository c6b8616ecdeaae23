// What this server is and allows, and what a secure connection would add.

import { askServer, server, type About } from "../store/about";
import { useObservable } from "../store/observable";
import { showRate, showSize, showSpan } from "../pure/units";
import { S } from "../strings";
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
        [S.server.queue, S.server.queueIdle],
        [S.server.secure, window.isSecureContext ? S.server.secureYes : S.server.secureNo],
      ]}
    />
  );
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
