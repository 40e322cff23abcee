import { type HttpApi, OpenApi } from "effect/http-api"
import type { Definitions, Node } from "#src/docs/page/FieldRows.ts"

/** The shown parts of the published document. Source: OpenAPI 3.1. */
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

export interface Document {
  readonly info: { readonly title: string; readonly description: string }
  readonly tags: ReadonlyArray<{ readonly name: string; readonly description?: string }>
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>
  readonly components: {
    readonly schemas: Definitions
    readonly securitySchemes: Readonly<Record<string, { readonly description: string }>>
  }
}

/** The document of an API as programs read it. */
export const documentOf = (api: HttpApi.Top): Document => JSON.parse(JSON.stringify(OpenApi.fromApi(api)))

/** The operations of the document, each once, in its order. */
export const groupsOf = ({ paths, tags }: Document): ReadonlyArray<Group> => {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      method: method.toUpperCase(),
      path
    }))
  )
  return tags.map(({ description = "", name }) => ({
    name,
    description,
    operations: operations.filter((operation) => operation.tags?.includes(name) === true)
  }))
}
