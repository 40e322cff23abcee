import { Schema } from "effect"

/** How a message's body is meant to be read. `auto`: as its text looks. Source: contract/notify#bodies */
export const BodyFormat = Schema.Literals(["auto", "text", "markdown", "json", "log"])
export type BodyFormat = typeof BodyFormat.Type
