// The tables of a block matrix: one per protocol and IP version, both ends' time, throughput, calls and bytes.

import { median } from "../pure/statistics";
import type { MatrixCell, MatrixResult, MatrixRun, NetRecord } from "../pure/record";
import { showBounds, showSize, splitRate, splitSpan } from "../pure/units";
import type { Interval } from "../pure/statistics";
import { S } from "../strings";

export function MatrixTables({ record }: { record: NetRecord }) {
  const all = record.versions.flatMap((version) => (version.matrix ?? []).map((matrix) => ({ version: version.version, matrix })));
  if (all.length === 0) return null;
  return (
    <section class="card">
      {all.map(({ version, matrix }) => (
        <MatrixTable key={version + matrix.protocol} version={version} matrix={matrix} />
      ))}
      <p class="note">{S.matrix.method}</p>
    </section>
  );
}

function MatrixTable({ version, matrix }: { version: string; matrix: MatrixResult }) {
  const columns = S.matrix.columns;
  const way = matrix.pedigree.direction === "reverse" ? S.table.down : S.table.up;
  const caption = S.matrix.caption(nameOf(matrix), version, way.toLowerCase());
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
      <table class="wide">
        <caption>{caption}</caption>
        <thead>
          <tr>
            {Object.values(columns).map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {matrix.cells.map((cell) => (
            <Row key={`${cell.bytes}/${cell.block}`} cell={cell} down={matrix.pedigree.direction === "reverse"} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Which transport stood for UDP. */
function nameOf(matrix: MatrixResult): string {
  const overChannel = matrix.protocol === "udp" && matrix.pedigree.method.startsWith("web");
  return overChannel ? S.matrix.udp_web : S.matrix[matrix.protocol];
}

function Row({ cell, down }: { cell: MatrixCell; down: boolean }) {
  const sender = (run: MatrixRun) => (down ? run.server?.calls : run.client?.calls);
  const receiver = (run: MatrixRun) => (down ? run.client : run.server);
  return (
    <tr>
      <th scope="row">{showSize(cell.bytes)}</th>
      <td>{showSize(cell.block)}</td>
      <td>{spread(cell.client_time, splitSpan)}</td>
      <td>{spread(cell.client_throughput, splitRate)}</td>
      <td>{middle(cell, sender)}</td>
      <td>{spread(cell.server_time, splitSpan)}</td>
      <td>{spread(cell.server_throughput, splitRate)}</td>
      <td>{middle(cell, (run) => receiver(run)?.calls)}</td>
      <td>{middle(cell, (run) => receiver(run)?.bytes)}</td>
      <td>{middle(cell, lostOf)}</td>
    </tr>
  );
}

/** Undefined where nobody told what came. */
function lostOf(run: MatrixRun): number | undefined {
  return run.client && !run.unknown ? run.lost : undefined;
}

function spread(interval: Interval | undefined, split: (value: number) => [string, string]) {
  if (!interval) return "–";
  return (
    <>
      {split(interval.estimate).join(" ")}
      {interval.hi > interval.lo && <small>{showBounds(interval.lo, interval.hi, split, S.table.to)}</small>}
    </>
  );
}

function middle(cell: MatrixCell, figure: (run: MatrixRun) => number | undefined): string {
  const found = median(cell.runs.flatMap((run) => figure(run) ?? []));
  return found === undefined ? "–" : Math.round(found).toLocaleString("en-GB");
}
