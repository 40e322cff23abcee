import { isJsonObject, type JsonObject } from "./SandboxModel.ts"

/** Schemas that refer to themselves end here: deeper down only required members are filled in, and then none. */
const depthMax = 6

const formats: JsonObject = {
  date: "2026-01-01",
  "date-time": "2026-01-01T12:00:00Z",
  time: "12:00:00Z",
  duration: "PT1H",
  email: "ada@example.com",
  hostname: "example.com",
  ipv4: "192.0.2.1",
  ipv6: "2001:db8::1",
  uri: "https://example.com/",
  url: "https://example.com/",
  uuid: "00000000-0000-4000-8000-000000000000"
}

const integerOf = (value: unknown, otherwise: number): number =>
  typeof value === "number" && Number.isFinite(value) ? value : otherwise

/** A value that the JSON Schema allows; texts are made of `word`. Patterns are ignored. */
export const exampleOf = (schema: unknown, word: string): unknown => new Example(schema, word).of(schema, 0)

class Example {
  private readonly root: unknown
  private readonly word: string

  constructor(root: unknown, word: string) {
    this.root = root
    this.word = word
  }

  of(schema: unknown, depth: number): unknown {
    if (!isJsonObject(schema)) return {}
    if ("const" in schema) return schema["const"]
    const given = ["enum", "examples"].map((name) => schema[name]).find((list) => Array.isArray(list))
    if (Array.isArray(given) && given.length > 0) return given[0]
    if ("default" in schema) return schema["default"]
    if (typeof schema["$ref"] === "string") return this.of(this.referred(schema["$ref"]), depth + 1)
    if (Array.isArray(schema["allOf"])) return this.merged(schema, schema["allOf"], depth)
    const choices = schema["anyOf"] ?? schema["oneOf"]
    if (Array.isArray(choices)) return this.of(this.shallowest(choices, depth), depth + 1)
    return this.byType(schema, depth)
  }

  /** Below the depth, a choice without references, such as null, ends the recursion. */
  private shallowest(choices: ReadonlyArray<unknown>, depth: number): unknown {
    if (depth < depthMax) return choices[0]
    return choices.find((choice) => isJsonObject(choice) && choice["type"] === "null") ?? choices[0]
  }

  private byType(schema: JsonObject, depth: number): unknown {
    const named = Array.isArray(schema["type"]) ? schema["type"][0] : schema["type"]
    const type = named ?? ("properties" in schema ? "object" : "items" in schema ? "array" : "string")
    if (type === "object") return this.object(schema, depth)
    if (type === "array") return this.array(schema, depth)
    if (type === "string") return this.text(schema)
    if (type === "number" || type === "integer") return this.number(schema, type === "integer")
    return type === "boolean" ? true : null
  }

  private object(schema: JsonObject, depth: number): unknown {
    const properties = isJsonObject(schema["properties"]) ? schema["properties"] : {}
    const required: ReadonlyArray<unknown> = Array.isArray(schema["required"]) ? schema["required"] : []
    if (depth > depthMax * 2) return {}
    return Object.fromEntries(
      Object.entries(properties)
        .filter(([name]) => depth < depthMax || required.includes(name))
        .map(([name, property]) => [name, this.of(property, depth + 1)])
    )
  }

  private array(schema: JsonObject, depth: number): unknown {
    const least = integerOf(schema["minItems"], depth < depthMax ? 1 : 0)
    const most = integerOf(schema["maxItems"], least)
    const items = Array.isArray(schema["prefixItems"]) ? schema["prefixItems"] : []
    const length = Math.min(Math.max(least, items.length), most, 100)
    return Array.from({ length }, (_, index) => this.of(items[index] ?? schema["items"] ?? {}, depth + 1))
  }

  private text(schema: JsonObject): string {
    const format = schema["format"]
    const known = typeof format === "string" ? formats[format] : undefined
    if (typeof known === "string") return known
    const padded = this.word.padEnd(Math.min(integerOf(schema["minLength"], 0), 10_000), ".")
    return padded.slice(0, integerOf(schema["maxLength"], padded.length))
  }

  private number(schema: JsonObject, isInteger: boolean): number {
    const step = integerOf(schema["multipleOf"], isInteger ? 1 : 0)
    const above = integerOf(schema["exclusiveMinimum"], -Infinity)
    const least = Math.max(integerOf(schema["minimum"], -Infinity), above)
    const most = Math.min(
      integerOf(schema["maximum"], Infinity),
      integerOf(schema["exclusiveMaximum"], Infinity)
    )
    const wanted = Math.max(least, Math.min(1, most))
    const stepped = step > 0 ? Math.ceil(wanted / step) * step : wanted
    if (stepped > above) return stepped
    return step > 0 ? stepped + step : most === Infinity ? stepped + 1 : (stepped + most) / 2
  }

  private merged(schema: JsonObject, parts: ReadonlyArray<unknown>, depth: number): unknown {
    const { allOf: _, ...own } = schema
    const examples = [...parts, ...(Object.keys(own).length > 0 ? [own] : [])].map((part) =>
      this.of(part, depth + 1)
    )
    return examples.every(isJsonObject) ? Object.assign({}, ...examples) : examples[0]
  }

  /** `#/$defs/name` */
  private referred(reference: string): unknown {
    let value: unknown = this.root
    for (const name of reference
      .replace(/^#\/?/, "")
      .split("/")
      .filter((part) => part !== "")) {
      value = isJsonObject(value) ? value[name.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined
    }
    return value
  }
}
