import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"

/**
 * The chunks of a stream that say what a whole answer says: its messages, then their ends, then its usage. For upstreams
 * that answer in one piece what was asked for as a stream.
 */
export const chunksOf = (whole: JsonRecord): ReadonlyArray<JsonRecord> => {
  const { choices: told, usage, ...rest } = whole
  const choices = Array.isArray(told) ? told.filter(isJsonRecord) : []
  const head = { ...rest, object: "chat.completion.chunk" }
  const said = choices.map(({ message, ...choice }, index) => ({
    index,
    ...choice,
    delta: isJsonRecord(message) ? deltaOf(message) : {},
    finish_reason: null
  }))
  const ended = choices.map(({ finish_reason: reason = null, index }, place) => ({
    index: index ?? place,
    delta: {},
    finish_reason: reason
  }))
  return [
    { ...head, choices: said },
    { ...head, choices: ended },
    ...(usage === undefined ? [] : [{ ...head, choices: [], usage }])
  ]
}

/** In a stream the calls of tools are numbered, so that their pieces can be put together. */
const deltaOf = ({ tool_calls: calls, ...message }: JsonRecord): JsonRecord => ({
  ...message,
  ...(Array.isArray(calls)
    ? { tool_calls: calls.map((call, index) => (isJsonRecord(call) ? { index, ...call } : call)) }
    : {})
})
