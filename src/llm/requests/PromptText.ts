import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"

/** The text of a request, as far as it is text: the calls and descriptions of tools are read by the model too. */
export const promptText = (body: JsonRecord): string => {
  const messages = Array.isArray(body["messages"]) ? body["messages"].filter(isJsonRecord) : []
  const texts = messages.flatMap(({ content, tool_calls: calls }) => [textIn(content), listIn(calls)])
  return [...texts, listIn(body["tools"])].filter((text) => text !== "").join("\n")
}

const listIn = (value: unknown): string =>
  Array.isArray(value) && value.length > 0 ? JSON.stringify(value) : ""

const textIn = (content: unknown): string => {
  if (typeof content === "string") return content
  if (!Array.isArray(content)) return ""
  return content
    .map((part) => (isJsonRecord(part) && typeof part["text"] === "string" ? part["text"] : ""))
    .join("\n")
}
