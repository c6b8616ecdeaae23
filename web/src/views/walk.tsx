// The walk through a building: where am I, the measurements so far, and the places side by side.

import { useEffect, useState } from "preact/hooks";
import type { SpreadChart } from "../pure/chart";
import { comparePlaces, PLACE_FIGURES, type PlaceFigure, type PlaceSummary } from "../pure/places";
import { MIDDLE, movedBy } from "../pure/spot";
import { VERSIONS, type Version } from "../pure/targets";
import { showBounds, splitRate, splitSpan } from "../pure/units";
import { server } from "../store/about";
import { entries, keepPlan, keptPlan } from "../store/database";
import { isMeasuring, live } from "../store/live";
import { useObservable } from "../store/observable";
import { remember, settings } from "../store/settings";
import { endWalk, newWalk, openWalk, standAt, startWalk, walk, type WalkState } from "../store/walk";
import { S } from "../strings";
import { Radio } from "./matrix";
import { Picture } from "./picture";
import { Status } from "./quick";
import { whenOf } from "./wording";

export function Walk() {
  const now = useObservable(walk);
  const [seconds, setSeconds] = useState(settings().walkSeconds);
  const known = useObservable(server);
  const every = /^\s*\d{1,4}\s*$/.test(seconds) ? Number(seconds) : 0;
  const good = every >= 10 && every <= 3600;
  const start = () => {
    if (known.state !== "here") return;
    remember({ walkSeconds: seconds });
    startWalk(known.about, every);
  };
  return (
    <>
      <h1>{S.walk.title}</h1>
      <p class="lead">{S.walk.lead}</p>
      <Here now={now} />
      <section class="card">
        {!now.running && (
          <label class="field">
            <span>{S.walk.every}</span>
            <input
              type="text"
              inputMode="numeric"
              maxLength={4}
              value={seconds}
              aria-invalid={!good}
              {...(good ? {} : { "aria-describedby": "walk-every" })}
              onInput={(event) => setSeconds(event.currentTarget.value)}
            />
            {!good && (
              <span class="complaint" id="walk-every">
                {S.walk.everyBad}
              </span>
            )}
          </label>
        )}
        {now.place === "" && <p class="note">{S.walk.needPlace}</p>}
        <button
          class={now.running ? "big stop" : "big"}
          type="button"
          disabled={!now.running && (!good || now.place === "" || known.state !== "here")}
          onClick={now.running ? endWalk : start}
        >
          {now.running ? S.walk.stop : S.walk.start}
        </button>
        <Progress now={now} />
      </section>
      {now.visits.length > 0 && <Places now={now} />}
      {!now.running && <Earlier now={now} />}
      {!now.running && now.visits.length > 0 && (
        <div class="buttons">
          <button type="button" onClick={newWalk}>
            {S.walk.fresh}
          </button>
        </div>
      )}
    </>
  );
}

function Earlier({ now }: { now: WalkState }) {
  const kept = useObservable(entries);
  const ids = [...new Set(kept.flatMap((entry) => entry.walk ?? []))].filter((id) => id !== now.id).slice(0, 20);
  if (ids.length === 0) return null;
  return (
    <section class="card" aria-label={S.walk.earlier}>
      <h2>{S.walk.earlier}</h2>
      <ul class="plain">
        {ids.map((id) => {
          const own = kept.filter((entry) => entry.walk === id);
          const first = own[own.length - 1]!;
          return (
            <li key={id}>
              <button type="button" onClick={() => openWalk(id, kept)}>
                {S.walk.earlierWalk(whenOf(first.record), own.length)}
              </button>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function Progress({ now }: { now: WalkState }) {
  const state = useObservable(live);
  const measuring = isMeasuring(state.stage);
  return (
    <>
      <p class="status" role="status">
        {now.running && measuring ? S.walk.now(now.place) : ""} {now.failed ? S.walk.failed(now.failed) : ""}
      </p>
      {now.running && (state.stage === "lost" || state.stage === "queued") && <Status now={state} />}
      {now.running && !measuring && now.next !== undefined && <p class="note">{S.walk.next(now.next)}</p>}
      {now.visits.length > 0 && <p class="note">{S.walk.taken(now.visits.length)}</p>}
    </>
  );
}

/** Where the person is: typed, tapped among the places so far, or tapped on a plan. */
function Here({ now }: { now: WalkState }) {
  const [typed, setTyped] = useState(now.place);
  const known = [...new Set([...now.visits.map((visit) => visit.place), ...settings().places])].slice(0, 24);
  const stand = (place: string, spot?: [number, number]) => {
    const name = place.trim();
    if (name === "") return;
    setTyped(name);
    standAt(name, spot);
    remember({ places: [...new Set([name, ...settings().places])].slice(0, 24) });
  };
  return (
    <section class="card">
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          stand(typed, now.spot);
        }}
      >
        <label class="field grow">
          <span>{S.walk.place}</span>
          <input type="text" maxLength={60} value={typed} placeholder={S.walk.placeHint} onInput={(event) => setTyped(event.currentTarget.value)} />
        </label>
        <button type="submit">{S.walk.here}</button>
      </form>
      {known.length > 0 && (
        <div class="chips" role="group" aria-label={S.walk.places}>
          {known.map((place) => (
            <button key={place} type="button" class="chip" aria-pressed={place === now.place} onClick={() => stand(place)}>
              {place}
            </button>
          ))}
        </div>
      )}
      <Plan now={now} tapped={(spot) => (typed.trim() === "" ? standAt("", spot) : stand(typed, spot))} />
    </section>
  );
}

function Plan({ now, tapped }: { now: WalkState; tapped: (spot: [number, number]) => void }) {
  const [picture, setPicture] = useState("");
  const [bad, setBad] = useState(false);
  const show = (blob: Blob | undefined) => setPicture(blob ? URL.createObjectURL(blob) : "");
  useEffect(() => void keptPlan().then(show, () => {}), []);
  useEffect(() => () => URL.revokeObjectURL(picture), [picture]);
  const choose = async (file: File | undefined) => {
    if (!file) return;
    const usable = file.size <= LARGEST_PLAN && (await isPicture(file));
    setBad(!usable);
    if (!usable) return;
    show(file);
    await keepPlan(file);
  };
  const [aim, setAim] = useState<[number, number]>();
  const tap = (event: MouseEvent) => {
    setAim(undefined);
    // Of a key a click has no count and no place.
    if (event.detail === 0) return tapped(aim ?? now.spot ?? MIDDLE);
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    tapped([(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height]);
  };
  const move = (event: KeyboardEvent) => {
    const moved = movedBy(event.key, event, aim ?? now.spot ?? MIDDLE);
    if (!moved) return;
    event.preventDefault();
    setAim(moved);
  };
  return (
    <details open={picture !== ""}>
      <summary>{S.walk.plan}</summary>
      {picture === "" ? (
        <p class="note">{S.walk.planHint}</p>
      ) : (
        <>
          <button type="button" class="plan" aria-describedby="plan-keys" onClick={tap} onKeyDown={move} onBlur={() => setAim(undefined)}>
            <img src={picture} alt={S.walk.planAlt} />
            {now.visits.map((visit, n) => visit.spot && <Spot key={n} at={visit.spot} title={S.walk.spot(visit.place)} here={false} />)}
            {now.spot && <Spot at={now.spot} title={S.walk.here} here />}
            {aim && <span class="spot aim" style={placeOf(aim)} />}
          </button>
          <p class="note" id="plan-keys">
            {S.walk.planTap}
          </p>
          <p class="note" role="status">
            {aim && S.walk.planAim(percentOf(aim[0]), percentOf(aim[1]))}
          </p>
        </>
      )}
      <div class="buttons">
        <label class="file button">
          {S.walk.choosePlan}
          <input type="file" accept="image/*" onChange={(event) => void choose(event.currentTarget.files?.[0])} />
        </label>
        {picture !== "" && (
          <button
            type="button"
            onClick={() => {
              show(undefined);
              void keepPlan(undefined);
            }}
          >
            {S.walk.removePlan}
          </button>
        )}
      </div>
      {bad && (
        <p class="complaint" role="alert">
          {S.walk.planBad}
        </p>
      )}
    </details>
  );
}

function Spot({ at, title, here }: { at: [number, number]; title: string; here: boolean }) {
  return <span class={here ? "spot here" : "spot"} title={title} style={placeOf(at)} />;
}

function placeOf([x, y]: [number, number]): { left: string; top: string } {
  return { left: `${x * 100}%`, top: `${y * 100}%` };
}

function percentOf(share: number): string {
  return `${Math.round(share * 100)} %`;
}

async function isPicture(file: File): Promise<boolean> {
  try {
    (await createImageBitmap(file)).close();
    return true;
  } catch {
    return false;
  }
}

function Places({ now }: { now: WalkState }) {
  const [version, setVersion] = useState<Version>(() => firstMeasured(now));
  const places = comparePlaces(now.visits, version);
  return (
    <section class="card" aria-label={S.walk.compare}>
      <h2>{S.walk.compare}</h2>
      <fieldset class="inline">
        <legend>{S.walk.version}</legend>
        {VERSIONS.map((each) => (
          <Radio key={each} name="walk-version" checked={each === version} text={each} choose={() => setVersion(each)} />
        ))}
      </fieldset>
      <div class="scroll" tabIndex={0} role="region" aria-label={S.walk.table}>
        <table class="wide">
          <thead>
            <tr>
              <th scope="col">{S.walk.columns.place}</th>
              {PLACE_FIGURES.map((figure) => (
                <th key={figure} scope="col">
                  {S.walk.figures[figure]}
                </th>
              ))}
              <th scope="col">{S.walk.columns.visits}</th>
            </tr>
          </thead>
          <tbody>
            {places.map((place) => (
              <tr key={place.place}>
                <th scope="row">{place.place}</th>
                {PLACE_FIGURES.map((figure) => (
                  <td key={figure}>
                    <Spread place={place} figure={figure} />
                  </td>
                ))}
                <td>{place.visits}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="note">{S.walk.spread}</p>
      {PLACE_FIGURES.map((figure) => {
        const chart = spreadChart(places, figure);
        return chart.rows.length > 1 && <Picture key={figure} chart={chart} ratio={0.56} />;
      })}
    </section>
  );
}

function firstMeasured(now: WalkState): Version {
  const found = now.visits[0]?.record.versions.find((version) => version.tcp || version.latency);
  return found?.version ?? "IPv4";
}

function Spread({ place, figure }: { place: PlaceSummary; figure: PlaceFigure }) {
  const spread = place.spread[figure];
  const split = isRate(figure) ? splitRate : splitSpan;
  if (!spread) return <>–</>;
  return (
    <>
      {split(spread.estimate).join(" ")}
      {spread.hi > spread.lo && <small>{showBounds(spread.lo, spread.hi, split, S.table.to)}</small>}
    </>
  );
}

function spreadChart(places: readonly PlaceSummary[], figure: PlaceFigure): SpreadChart {
  const rows = places.flatMap((place) => {
    const spread = place.spread[figure];
    if (!spread) return [];
    const values = (place.values[figure] ?? []).map((value) => value / MILLION);
    return [{ name: place.place, lo: spread.lo / MILLION, mid: spread.estimate / MILLION, hi: spread.hi / MILLION, values }];
  });
  return { kind: "spreads", title: S.charts.places[figure], y: { label: isRate(figure) ? S.charts.rateAxis : S.charts.msAxis }, rows };
}

function isRate(figure: PlaceFigure): boolean {
  return figure === "down" || figure === "up";
}

const LARGEST_PLAN = 20e6;
/** bit/s to Mbit/s, and ns to ms. */
const MILLION = 1e6;
