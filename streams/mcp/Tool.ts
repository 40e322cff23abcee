import { Effect, Result, Schema } from "effect"
import { fieldFault, type FieldFault } from "#schemas/core/FieldFault.ts"
import { jsonFaultOf } from "#schemas/core/JsonFitness.ts"
import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"
import type { Problem } from "#schemas/core/Problem.ts"
import { ReadArguments } from "./Messages.ts"

/** A part of a tool's answer. */
export type Content =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image" | "audio"; readonly data: string; readonly mimeType: string }
  | {
      readonly type: "resource"
      readonly resource: {
        readonly uri: string
        readonly mimeType?: string
        readonly text?: string
        readonly blob?: string
      }
    }

/** The answer of a tool's handler. Without `content` its text is the JSON of `structured`. */
export interface ToolAnswer<Output> {
  readonly content?: ReadonlyArray<Content>
  readonly structured?: Output
  readonly isError?: boolean
}

/** The result of a call, as the client gets it. */
export interface ToolResult {
  readonly content: ReadonlyArray<Content>
  readonly structuredContent?: unknown
  readonly isError?: boolean
}

/** Hints for a client, which may show or trust them as it likes. */
interface ToolAnnotations {
  readonly title?: string
  readonly readOnlyHint?: boolean
  readonly destructiveHint?: boolean
  readonly idempotentHint?: boolean
  readonly openWorldHint?: boolean
}

/** How a tool gets its arguments, which are an object; unknown members are ignored. */
type ToolInput<Input> =
  | { readonly input: Schema.ConstraintDecoder<Input>; readonly read?: undefined }
  | {
      /** published alone */
      readonly input: Schema.Constraint
      /** The endpoint's `BodyReaders` may have it too, but not for a tool whose parameters headers repeat. */
      readonly read: (args: JsonRecord) => Result.Result<Input, FieldFault>
    }

/** A tool as its room declares it. `Caller` is the adapter's knowledge of the request. */
type ToolDeclaration<Caller, Input, Output> = ToolInput<Input> & {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly annotations: ToolAnnotations
  /** the published JSON Schema of the arguments, where it is not the one made from `input` */
  readonly inputSchema?: JsonRecord
  /** of an object; without it there is no structured content */
  readonly output?: Schema.ConstraintCodec<Output, unknown>
  /** capabilities that a client must have; only those of modern clients are known with each call */
  readonly requires?: ReadonlyArray<string>
  /** A failure is a failed result with its message alone. */
  readonly handle: (input: Input, caller: Caller) => Effect.Effect<ToolAnswer<Output>, Problem>
}

/** A tool that is ready to be called. */
export interface Tool<in Caller> {
  readonly name: string
  /** its entry in `tools/list` */
  readonly listed: JsonRecord
  readonly requires: ReadonlyArray<string>
  /** The work of a call, or the first argument that is wrong. */
  readonly prepare: (
    args: JsonRecord | ReadArguments
  ) => Result.Result<(caller: Caller) => Effect.Effect<ToolResult>, FieldFault>
}

/** Makes a tool of its declaration. */
export const tool = <Caller, Input, Output = never>(
  declaration: ToolDeclaration<Caller, Input, Output>
): Tool<Caller> => {
  const { annotations, description, handle, input, name, output, requires = [], title } = declaration
  const readArgs = declaration.read ?? decoding(declaration.input)
  const read = (args: JsonRecord | ReadArguments): Result.Result<Input, FieldFault> =>
    args instanceof ReadArguments
      ? // By the same function, where the body was read.
        (args.result as Result.Result<Input, FieldFault>)
      : readArgs(args)
  const encode = output === undefined ? undefined : Schema.encodeUnknownEffect(output)
  const answer = ({ content, isError, structured }: ToolAnswer<Output>): Effect.Effect<ToolResult> => {
    if (structured === undefined || encode === undefined)
      return Effect.succeed({ content: content ?? [], ...(isError === true ? { isError } : {}) })
    return Effect.map(Effect.orDie(encode(structured)), (structuredContent) => ({
      content: content ?? [{ type: "text", text: JSON.stringify(structuredContent) }],
      structuredContent,
      ...(isError === true ? { isError } : {})
    }))
  }
  return {
    name,
    requires,
    listed: {
      name,
      title,
      description,
      inputSchema: declaration.inputSchema ?? objectSchemaOf(input),
      ...(output === undefined ? {} : { outputSchema: objectSchemaOf(output) }),
      annotations
    },
    prepare: (args) =>
      Result.map(
        read(args),
        (given) => (caller: Caller) =>
          Effect.matchEffect(handle(given, caller), {
            onSuccess: answer,
            onFailure: ({ message }) => Effect.succeed(failedResult(message))
          })
      )
  }
}

const decoding = <Input>(input: Schema.ConstraintDecoder<Input>) => {
  const decode = Schema.decodeUnknownResult(input)
  return (args: JsonRecord): Result.Result<Input, FieldFault> => {
    const unfit = jsonFaultOf(args, { isNulRefused: true })
    if (unfit !== undefined) return Result.fail(unfit)
    return Result.mapError(decode(args), (cause) => namedFault(fieldFault({ cause })))
  }
}

/** A failed result: the client's model reads its text. */
export const failedResult = (text: string): ToolResult => ({
  content: [{ type: "text", text }],
  isError: true
})

const namedFault = ({ field, text }: FieldFault): FieldFault => ({
  field: field === "body" ? "arguments" : field,
  text
})

const isVendorKey = (key: string): boolean => key.startsWith("x-")

/**
 * The JSON Schema of an object, without references: a published client of 2025-06-18 drops `$defs` from the schemas of
 * outputs, and cannot read those that refer to it. Only a schema within itself is left under `$defs`.
 */
const objectSchemaOf = (schema: Schema.Constraint): JsonRecord => {
  const document = Schema.toJsonSchemaDocument(schema, { includeAnnotationKey: isVendorKey })
  const definitions: Record<string, unknown> = document.definitions
  const outer = inlined(document.schema, definitions, [])
  const isRecursive = JSON.stringify(outer).includes(`"$ref":"${definitionsAt}`)
  return {
    ...(isJsonRecord(outer) && outer["type"] === "object" ? outer : { type: "object" }),
    ...(isRecursive ? { $defs: definitions } : {})
  }
}

const definitionsAt = "#/$defs/"

/** @param within the names of the definitions that this is in */
const inlined = (
  schema: unknown,
  definitions: Readonly<Record<string, unknown>>,
  within: ReadonlyArray<string>
): unknown => {
  if (Array.isArray(schema)) return schema.map((part) => inlined(part, definitions, within))
  if (!isJsonRecord(schema)) return schema
  const { $ref, ...rest } = schema
  const parts = Object.entries(rest).map(([key, part]) => [key, inlined(part, definitions, within)] as const)
  if (typeof $ref !== "string" || !$ref.startsWith(definitionsAt))
    return Object.fromEntries([...Object.entries(schema), ...parts])
  const name = $ref.slice(definitionsAt.length)
  if (within.includes(name)) return schema
  const named = inlined(definitions[name], definitions, [...within, name])
  return { ...(isJsonRecord(named) ? named : {}), ...Object.fromEntries(parts) }
}
