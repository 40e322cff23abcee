import { Schema } from "effect"
import { Model } from "effect/schema"
import { TimestampOfDate } from "./Timestamp.ts"

/**
 * Fields of a noun. Each is declared once, with its form in Postgres (`select`, `insert`, `update`), in answers (`json`) and
 * in requests (`jsonCreate`, `jsonUpdate`). Stored values were checked when they came in, and are not checked again when
 * they are read: rows of earlier versions stay readable.
 */

/** An id that the server gives it, or its owner's, which is written by `Table.insertFor`. */
export const made = <S extends Schema.Top>(shown: S) => Model.Field({ select: Schema.String, json: shown })

/** The caller gives it, and may change it. */
export const given = <S extends Schema.Top, T extends Schema.Top>(stored: S, sent: T) =>
  Model.Field({
    select: stored,
    insert: stored,
    update: stored,
    json: stored,
    jsonCreate: sent,
    jsonUpdate: Schema.optionalKey(sent)
  })

/** The caller may give it; `atCreation`: annotations of the field there, such as its default. */
export const maybeGiven = <S extends Schema.Top, T extends Schema.Top>(
  stored: S,
  sent: T,
  atCreation: Parameters<T["annotate"]>[0] = {}
) =>
  Model.Field({
    select: stored,
    insert: stored,
    update: stored,
    json: stored,
    jsonCreate: Schema.optionalKey(sent.annotate(atCreation) as T),
    jsonUpdate: Schema.optionalKey(sent)
  })

/** The same, but written by a statement of its own: no column of the table has this form. */
export const computed = <S extends Schema.Top, T extends Schema.Top>(shown: S, sent: T) =>
  Model.Field({ select: shown, json: shown, jsonCreate: sent })

/** Postgres writes down when it was made. */
export const madeAt = Model.Field({ select: Schema.Date, json: TimestampOfDate })

/** The owner's id, which answers do not show. */
export const hidden = Model.Field({ select: Schema.String })

/** A form of a noun under its name in the published document. */
export const shape = <F extends Schema.Struct.Fields>(
  identifier: string,
  { fields }: { readonly fields: F },
  description?: string
) => Schema.Struct(fields).annotate({ identifier, ...(description !== undefined && { description }) })
