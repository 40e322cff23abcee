import { Effect, Schema } from "effect"
import { BadRequest } from "#schemas/core/Problem.ts"
import type { McpCaller } from "#src/infra/mcp/McpEndpoint.ts"
import { makeServer, type McpServer } from "#streams/mcp/McpServer.ts"
import { type Content, type Tool, tool } from "#streams/mcp/Tool.ts"

/** The tools that the official conformance suite asks a server for, as far as they need no stream, and some of our own. */

const nothing = Schema.Struct({})
const readOnly = { readOnlyHint: true, openWorldHint: false }

/** A PNG of one red pixel, and a WAV of no sound. */
const image =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
const audio = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

const text = (words: string): Content => ({ type: "text", text: words })

const says = (name: string, content: ReadonlyArray<Content>, requires: ReadonlyArray<string> = []) =>
  tool({
    name,
    title: `The tool ${name}`,
    description: `Answers what the conformance suite expects of ${name}`,
    annotations: readOnly,
    input: nothing,
    requires,
    handle: () => Effect.succeed({ content })
  })

const resource = (uri: string, mimeType: string, words: string): Content => ({
  type: "resource",
  resource: { uri, mimeType, text: words }
})

const conformance: ReadonlyArray<Tool<McpCaller>> = [
  says("test_simple_text", [text("This is a simple text response for testing.")]),
  says("test_image_content", [{ type: "image", data: image, mimeType: "image/png" }]),
  says("test_audio_content", [{ type: "audio", data: audio, mimeType: "audio/wav" }]),
  says("test_embedded_resource", [
    resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
  ]),
  says("test_multiple_content_types", [
    text("Multiple content types test:"),
    { type: "image", data: image, mimeType: "image/png" },
    resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
  ]),
  says("test_missing_capability", [text("The client can sample.")], ["sampling"]),
  says("test_streaming_elicitation", [text("Nothing was asked of the client.")]),
  says("test_logging_tool", [text("Nothing was logged to the client.")]),
  tool({
    name: "test_error_handling",
    title: "Failure",
    description: "Fails always",
    annotations: readOnly,
    input: nothing,
    handle: () => Effect.fail(BadRequest.of("This tool intentionally returns an error for testing"))
  }),
  tool({
    name: "json_schema_2020_12_tool",
    title: "JSON Schema",
    description: "Tool with JSON Schema 2020-12 features",
    annotations: readOnly,
    input: Schema.Record(Schema.String, Schema.Unknown),
    inputSchema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      $defs: {
        address: {
          $anchor: "addressDef",
          type: "object",
          properties: { street: { type: "string" }, city: { type: "string" } }
        }
      },
      properties: {
        name: { type: "string" },
        address: { $ref: "#/$defs/address" },
        contactMethod: { type: "string", enum: ["phone", "email"] },
        phone: { type: "string" },
        email: { type: "string" }
      },
      allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
      if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
      then: { required: ["phone"] },
      else: { required: ["email"] },
      additionalProperties: false
    },
    handle: (input) => Effect.succeed({ content: [text(Object.keys(input).join())] })
  }),
  tool({
    name: "test_custom_header",
    title: "Region",
    description: "Repeats a parameter that a header repeats, too",
    annotations: readOnly,
    input: Schema.Struct({
      region: Schema.optionalKey(Schema.String.annotate({ "x-mcp-header": "Region" }))
    }),
    handle: ({ region = "" }) => Effect.succeed({ content: [text(region)] })
  })
]

/** The calls of `wait`, in the order of their beginnings and ends. */
export const waits: Array<string> = []

const caller = Schema.Struct({
  keyId: Schema.String,
  idempotencyKey: Schema.String,
  session: Schema.String,
  query: Schema.String
})

const Part = Schema.Struct({
  filename: Schema.String,
  kind: Schema.optionalKey(Schema.Literals(["text", "file"]))
}).annotate({ identifier: "Part" })

const ours: ReadonlyArray<Tool<McpCaller>> = [
  tool({
    name: "who",
    title: "Caller",
    description: "Tells the caller of the tool",
    annotations: readOnly,
    input: nothing,
    output: caller,
    handle: (_, { idempotencyKey = "", key, request: { query }, session }: McpCaller) =>
      Effect.succeed({ structured: { keyId: key.keyId, idempotencyKey, session, query } })
  }),
  tool({
    name: "measure",
    title: "Length",
    description: "Measures a text",
    annotations: readOnly,
    input: Schema.Struct({
      text: Schema.String,
      times: Schema.optionalKey(Schema.Int),
      parts: Schema.optionalKey(Schema.Array(Part))
    }),
    output: Schema.Struct({ characters: Schema.Int }),
    handle: ({ text: { length }, times = 1 }) =>
      Effect.succeed({ structured: { characters: length * times } })
  }),
  tool({
    name: "wait",
    title: "Pause",
    description: "Waits so many milliseconds",
    annotations: readOnly,
    input: Schema.Struct({ millis: Schema.Int }),
    handle: ({ millis }) =>
      Effect.suspend(() => {
        waits.push(`begin ${millis}`)
        return Effect.sleep(millis)
      }).pipe(
        Effect.onExit(({ _tag }) => Effect.sync(() => waits.push(`${_tag} ${millis}`))),
        Effect.as({ content: [text("waited")] })
      )
  }),
  tool({
    name: "quit",
    title: "Interruption",
    description: "Gives itself up",
    annotations: readOnly,
    input: nothing,
    handle: () => Effect.interrupt
  }),
  tool({
    name: "break",
    title: "Defect",
    description: "Breaks with a defect",
    annotations: readOnly,
    input: nothing,
    handle: () => Effect.die(new Error("a secret of the server"))
  })
]

export const diagnosticServer: McpServer<McpCaller> = makeServer({
  name: "signalbox-diagnostic",
  title: "Diagnostic tools",
  version: "0.1.0",
  instructions: "Tools that tests call.",
  tools: [...conformance, ...ours]
})
