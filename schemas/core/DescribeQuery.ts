import { Predicate, Schema } from "effect"
import { HttpApi, type HttpApiGroup } from "effect/http-api"

/**
 * Query fields travel as text, and so OpenApi describes a number as a string with a pattern. This restores the type,
 * bounds, default and description of the decoded field.
 */
export const describeQuery =
  <Id extends string, Groups extends HttpApiGroup.Constraint>(api: HttpApi.HttpApi<Id, Groups>) =>
  (spec: { [key: string]: unknown }): { [key: string]: unknown } => {
    const described = queryFieldsOf(api)
    const paths = Object.entries(Predicate.isObject(spec["paths"]) ? spec["paths"] : {})
    for (const [path, operations] of paths) {
      for (const [method, operation] of Object.entries(Predicate.isObject(operations) ? operations : {})) {
        const fields = described.get(`${method} ${path}`)
        if (fields !== undefined && Predicate.isObject(operation)) replaceSchemas(operation, fields)
      }
    }
    return spec
  }

type Fields = ReadonlyMap<string, object>

const replaceSchemas = (operation: object, fields: Fields): void => {
  if (!Predicate.hasProperty(operation, "parameters") || !Array.isArray(operation.parameters)) return
  for (const parameter of operation.parameters) {
    const schema = parameter.in === "query" ? fields.get(parameter.name) : undefined
    if (schema !== undefined) parameter.schema = schema
  }
}

const queryFieldsOf = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>
): ReadonlyMap<string, Fields> => {
  const described = new Map<string, Fields>()
  HttpApi.reflect(api, {
    onGroup() {},
    onEndpoint({ endpoint }) {
      if (endpoint.query === undefined) return
      const document = Schema.toJsonSchemaDocument(Schema.toType(endpoint.query))
      const properties = Predicate.isObject(document.schema.properties) ? document.schema.properties : {}
      const path = endpoint.path.replace(/:(\w+)/g, "{$1}")
      described.set(
        `${endpoint.method.toLowerCase()} ${path}`,
        new Map(
          Object.entries(properties).flatMap(([name, field]) =>
            Predicate.isObject(field) ? [[name, field]] : []
          )
        )
      )
    }
  })
  return described
}
