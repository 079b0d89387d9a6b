/** Download answers, copy text. */
import type { Row } from "./answers";

const quoted = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** CSV (RFC 4180) with a line for each answer: its terms, then label, source, score and confidence. */
export function toCsv(rows: Row[], columns: string[]): string {
  const head = [...columns, "_label", "_type", "_source", "_score", "_confidence"];
  const body = rows.map((row) => {
    const terms = columns.map((name) => row.row[name]?.value ?? "");
    const figures = row.source === "known" ? ["", ""] : [row.score, row.confidence ?? ""];
    return [...terms, row.label, row.type ?? "", row.source, ...figures];
  });
  return [head, ...body].map((line) => `${line.map((cell) => quoted(String(cell))).join(",")}\r\n`).join("");
}

/** Downloads a text as a file. */
export function save(name: string, text: string, type: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Copies a text to the clipboard; false if the browser does not allow it. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea"); // plain http on another host has no clipboard
    area.value = text;
    area.className = "unseen";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
