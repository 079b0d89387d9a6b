/** Formatting of numbers, labels and durations. */
const WHOLE = new Intl.NumberFormat("en");

export const count = (value: number) => WHOLE.format(value);

/** "1 answer", "24 answers". */
export const many = (value: number, one: string, more = `${one}s`) => `${count(value)} ${value === 1 ? one : more}`;

/** A share as a percentage with two significant digits, and never a false 0 or 100. */
export function percent(share: number): string {
  const value = share * 100;
  if (value > 0 && value < 0.1) return "< 0.1 %";
  if (value < 100 && value > 99.9) return "> 99.9 %";
  return `${value < 9.95 || (value > 99 && value < 100) ? value.toFixed(1) : value.toFixed(0)} %`;
}

/** A score, which is not a probability. */
export const score = (value: number) => value.toFixed(3);

/** Text cut to a length, with an ellipsis. */
export const cut = (text: string, most: number) => (text.length > most ? `${text.slice(0, most - 1).trimEnd()}…` : text);

/** Text of the graph that can be shown: without control characters and marks that reorder the text around it, and not endless. */
export const harmless = (text: string) =>
  cut(text.slice(0, 1001).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, "\ufffd"), 1000);

/** A label on at most two lines of about the given length. */
export function lines(text: string, length: number): string[] {
  if (text.length <= length) return [text];
  const words = text.split(" ");
  let first = words.shift() ?? "";
  while (words[0] !== undefined && first.length + words[0].length + 1 <= length) first += ` ${words.shift()}`;
  const second = words.join(" ");
  return second ? [cut(first, length + 4), cut(second, length + 4)] : [cut(first, length + 4)];
}

/** Seconds as "23 ms" or "1.4 s". */
export const took = (seconds: number) =>
  seconds < 1 ? `${Math.max(1, Math.round(seconds * 1000))} ms` : `${seconds.toFixed(1)} s`;
