import { OpenApi } from "effect/http-api"
import { PublishedApi } from "#schemas/Api.ts"
import type { Definitions, Node } from "#src/infra/reference/FieldRows.ts"

/** What of the published document is shown. Source: OpenAPI 3.1. */
export interface Parameter {
  readonly name: string
  readonly in: "path" | "query" | "header"
  readonly required?: boolean
  readonly schema: Node
}

interface Media {
  readonly schema?: Node
}

interface Answer {
  readonly description: string
  readonly content?: Readonly<Record<string, Media>>
}

interface OperationObject {
  readonly operationId: string
  readonly tags?: ReadonlyArray<string>
  readonly summary?: string
  readonly description?: string
  readonly parameters?: ReadonlyArray<Parameter>
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> }
  readonly responses: Readonly<Record<string, Answer>>
  readonly security?: ReadonlyArray<Readonly<Record<string, unknown>>>
}

export interface Operation extends OperationObject {
  readonly method: string
  readonly path: string
}

export interface Group {
  readonly name: string
  readonly description: string
  readonly operations: ReadonlyArray<Operation>
}

interface Document {
  readonly info: { readonly title: string; readonly description: string }
  readonly tags: ReadonlyArray<{ readonly name: string; readonly description: string }>
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>
  readonly components: {
    readonly schemas: Definitions
    readonly securitySchemes: Readonly<Record<string, { readonly description: string }>>
  }
}

export const document: Document = JSON.parse(JSON.stringify(OpenApi.fromApi(PublishedApi)))

const operations: ReadonlyArray<Operation> = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path }))
)

/** The operations of the document, each once, in its order. */
export const groups: ReadonlyArray<Group> = document.tags.map(({ description, name }) => ({
  name,
  description,
  operations: operations.filter(({ tags }) => tags?.includes(name) === true)
}))
