// Takes what came from outside (a shared link, a file, a server) apart and keeps only what has the right type and a bounded size.
//
// Whatever passes can be drawn without a look: numbers are finite numbers, texts are short and without control characters, lists
// are bounded. What does not fit is dropped; what is required and missing rejects the whole.

export type Reader<T> = (value: unknown) => T | undefined;

export const number: Reader<number> = (value) => (typeof value === "number" && Number.isFinite(value) ? value : undefined);

export const truth: Reader<boolean> = (value) => (typeof value === "boolean" ? value : undefined);

export function text(most = 300): Reader<string> {
  return (value) => (typeof value === "string" ? clean(value).slice(0, most) : undefined);
}

export function oneOf<const T extends string>(...words: T[]): Reader<T> {
  return (value) => words.find((word) => word === value);
}

export function list<T>(reader: Reader<T>, most: number): Reader<T[]> {
  return (value) => {
    if (!Array.isArray(value)) return undefined;
    return value.slice(0, most).flatMap((each) => {
      const read = reader(each);
      return read === undefined ? [] : [read];
    });
  };
}

export function pair(reader: Reader<number>): Reader<[number, number]> {
  return (value) => {
    if (!Array.isArray(value)) return undefined;
    const [first, second] = [reader(value[0]), reader(value[1])];
    return first === undefined || second === undefined ? undefined : [first, second];
  };
}

type Fields = Record<string, Reader<unknown>>;
type Read<F extends Fields> = { [K in keyof F]: Exclude<ReturnType<F[K]>, undefined> };

/** `required` must all be readable; of `optional` what is. */
export function fields<R extends Fields, O extends Fields>(required: R, optional: O): Reader<Read<R> & Partial<Read<O>>> {
  return (value) => {
    const given = object(value);
    if (given === undefined) return undefined;
    const out: Record<string, unknown> = {};
    for (const [name, reader] of Object.entries(required)) {
      const read = Object.hasOwn(given, name) ? reader(given[name]) : undefined;
      if (read === undefined) return undefined;
      out[name] = read;
    }
    for (const [name, reader] of Object.entries(optional)) {
      const read = Object.hasOwn(given, name) ? reader(given[name]) : undefined;
      if (read !== undefined) out[name] = read;
    }
    return out as Read<R> & Partial<Read<O>>;
  };
}

/** Any object, whatever is in it. */
export const object: Reader<Record<string, unknown>> = (value) => {
  const is = typeof value === "object" && value !== null && !Array.isArray(value);
  return is ? (value as Record<string, unknown>) : undefined;
};

/** An object's numbers of these names; 0 for what it does not say. */
export function numbers<const N extends string>(...names: N[]): Reader<Record<N, number>> {
  return (value) => {
    const given = object(value);
    if (given === undefined) return undefined;
    const read = names.map((name) => [name, Object.hasOwn(given, name) ? (number(given[name]) ?? 0) : 0]);
    return Object.fromEntries(read) as Record<N, number>;
  };
}

/** Takes in of a list what can be read and for which there is room, where no more than `most` are kept; what it took. */
export function takeIn<T>(kept: T[], told: unknown, reader: Reader<T>, most: number): T[] {
  const fresh = list(reader, Math.max(0, most - kept.length))(told) ?? [];
  kept.push(...fresh);
  return fresh;
}

/** Anything of JSON, bounded in depth, breadth and length; for what is shown as a plain table. */
export function anything(depth = 6): Reader<unknown> {
  return (value) => {
    if (typeof value === "string") return text()(value);
    if (typeof value === "boolean" || value === null) return value;
    if (typeof value === "number") return number(value);
    if (depth === 0 || typeof value !== "object") return undefined;
    if (Array.isArray(value)) return list(anything(depth - 1), 4000)(value);
    const entries = Object.entries(value).slice(0, 80);
    const read = entries.map(([name, each]) => [clean(name).slice(0, 60), anything(depth - 1)(each)] as const);
    return Object.fromEntries(read.filter(([name, each]) => each !== undefined && name !== "__proto__"));
  };
}

export function dictionary(most: number): Reader<Record<string, string>> {
  return (value) => {
    if (typeof value !== "object" || value === null) return undefined;
    const entries = Object.entries(value).slice(0, most);
    return Object.fromEntries(entries.flatMap(([name, each]) => (typeof each === "string" ? [[clean(name).slice(0, 60), clean(each).slice(0, 200)]] : [])));
  };
}

/** Control characters, and marks that turn the direction of the text around them. */
function clean(value: string): string {
  return value.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, " ");
}
