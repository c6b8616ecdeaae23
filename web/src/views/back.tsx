// The way back to the list of results.

import { S } from "../strings";

export function Back({ back }: { back: () => void }) {
  return (
    <button type="button" class="back" onClick={back}>
      ‹ {S.results.back}
    </button>
  );
}
