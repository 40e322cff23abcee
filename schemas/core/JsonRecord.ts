/** A JSON object with unknown members. */
export type JsonRecord = Readonly<Record<string, unknown>>

export const isJsonRecord = (value: unknown): value is JsonRecord =>
  typeof value === "object" && value !== null && !Array.isArray(value)
