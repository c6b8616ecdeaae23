// Who is here, who waits, and how the server's host does: for its owner.

import { useEffect, useState } from "preact/hooks";
import { showSize, showSpan, threeDigits } from "../pure/units";
import { giveKey, key } from "../store/key";
import { useObservable } from "../store/observable";
import { owner, watchOwner, type OwnerView } from "../store/owner";
import { S } from "../strings";
import { Facts } from "./recordView";

export function Owner({ wantsKey }: { wantsKey: boolean }) {
  const given = useObservable(key);
  const known = useObservable(owner);
  useEffect(() => (wantsKey && given === "" ? undefined : watchOwner(given)), [wantsKey, given]);
  return (
    <section class="card" aria-label={S.owner.title}>
      <h2>{S.owner.title}</h2>
      {wantsKey && <KeyField given={given !== ""} />}
      {!(wantsKey && given === "") && known.state === "asking" && <p role="status">{S.server.asking}</p>}
      {known.state === "refused" && <p role="status">{known.why}</p>}
      {known.state === "here" && <View view={known.view} />}
    </section>
  );
}

function KeyField({ given }: { given: boolean }) {
  const [typed, setTyped] = useState("");
  const give = (event: Event) => {
    event.preventDefault();
    giveKey(typed);
    setTyped("");
  };
  return (
    <form class="field" onSubmit={give}>
      <label for="key">{S.owner.key}</label>
      <input id="key" type="password" autocomplete="off" value={typed} aria-describedby="key-hint" onInput={(event) => setTyped(event.currentTarget.value)} />
      <p class="note" id="key-hint">
        {given ? S.owner.keyGiven : S.owner.keyHint}
      </p>
      <div class="buttons">
        <button type="submit" disabled={typed === ""}>
          {S.owner.giveKey}
        </button>
      </div>
    </form>
  );
}

function View({ view }: { view: OwnerView }) {
  const { queue, health } = view;
  const waiting = queue.waiting.map((place, n) => S.owner.waits(n + 1, place.peers.join(", ") || "?", showSpan(place.expected)));
  const held = queue.held.map((place) => S.owner.holds(place.peers.join(", ") || "?", showSpan(place.expected)));
  const sessions = view.sessions.map((each) => {
    const tests = each.tests.map((test) => `${S.owner.tests[test.what] ?? test.what} ${showSpan(test.lasting)}`);
    return S.owner.session(each.peer, each.software, showSpan(each.lasting), tests.join(", ") || S.owner.idle);
  });
  const results = view.results?.map((each) => [S.results.kinds[each.command] ?? each.command, each.host, each.label, new Date(each.started_at / 1e6).toLocaleString()].filter(Boolean).join(", "));
  return (
    <Facts
      rows={[
        [S.owner.measuring(queue.slots), <Lines of={held} none={S.owner.nobody} />],
        [S.owner.waiting, <Lines of={waiting} none={S.owner.nobody} />],
        [S.owner.sessions(sessions.length), <Lines of={sessions.slice(0, MOST_LINES)} none={S.owner.nobody} />],
        ...(results ? [[S.owner.results, <Lines of={results} none={S.results.serverNone} />] as [string, preact.ComponentChildren]] : []),
        [S.owner.health, <Lines of={healthOf(health)} none="" />],
        [S.owner.uptime, showSpan(view.uptime)],
      ]}
    />
  );
}

function Lines({ of, none }: { of: string[]; none: string }) {
  if (of.length === 0) return <>{none}</>;
  return (
    <>
      {of.map((line, n) => (
        <div key={n}>{line}</div>
      ))}
    </>
  );
}

function healthOf(health: OwnerView["health"]): string[] {
  const percent = (share: number) => `${threeDigits(share * 100)} %`;
  return [
    health.cpu === undefined ? "" : S.owner.cpu(percent(health.cpu), health.cores),
    health.process === undefined ? "" : S.owner.process(percent(health.process)),
    health.steal === undefined || health.steal < 0.005 ? "" : S.owner.steal(percent(health.steal)),
    health.load === undefined ? "" : S.owner.load([health.load.one, health.load.five, health.load.fifteen].map(threeDigits).join(", ")),
    health.memory === undefined ? "" : S.owner.memory(showSize(health.memory.available), showSize(health.memory.total)),
  ].filter((line) => line !== "");
}

const MOST_LINES = 50;
