import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"
import type { ResultStep } from "./Step.ts"

const text = (value: unknown): string => (typeof value === "string" ? value : "")

const lines = (value: unknown): string =>
  Array.isArray(value) ? value.filter((one) => typeof one === "string").join("\n") : ""

const cut = (result: JsonRecord): string =>
  result["truncated"] === true ? "\n[There is more: narrow it down]" : ""

/** A call's outcome as a model sees it. */
export const toolText = (tool: string, { error, ok, result }: ResultStep): string => {
  if (!ok) return `Error (${error?.code ?? "exec_failed"}): ${error?.message ?? "the call failed"}`
  if (!isJsonRecord(result)) return JSON.stringify(result ?? null)
  return bounded((texts[tool] ?? JSON.stringify)(result))
}

/** Clients hold to `textBytes` themselves, and add a line or two; one that does not must not fill a model's context. */
const charactersMax = 2 * agentLimits.textBytes

const bounded = (told: string): string =>
  told.length <= charactersMax
    ? told
    : `${told.slice(0, charactersMax)}\n[Cut off: the client sent ${told.length} characters]`

const texts: Readonly<Record<string, (result: JsonRecord) => string>> = {
  read: (result) =>
    result["truncated"] === true
      ? `${text(result["content"])}\n[${String(result["totalLines"])} lines in all; go on with offset ${String(result["nextOffset"])}]`
      : text(result["content"]),
  write: (result) =>
    `${result["created"] === true ? "Created" : "Replaced"}, ${String(result["bytes"])} bytes`,
  edit: (result) => `Replaced ${String(result["replacements"])}:\n${text(result["diff"])}`,
  ls: (result) => (lines(result["entries"]) || "(empty)") + cut(result),
  find: (result) => (lines(result["entries"]) || "(none)") + cut(result),
  grep: (result) => (lines(result["matches"]) || "(none)") + cut(result),
  bash: (result) => {
    const signal = result["signal"]
    const end =
      typeof signal === "string"
        ? `ended by ${signal}`
        : result["exitCode"] === 0
          ? ""
          : `exit code ${String(result["exitCode"])}`
    const rest =
      result["truncated"] === true
        ? `[Only the end is shown${typeof result["fullOutputPath"] === "string" ? `; all of it is in ${result["fullOutputPath"]}` : ""}]\n`
        : ""
    return `${rest}${text(result["output"])}${end === "" ? "" : `\n[${end}]`}` || "(no output)"
  }
}
