import fc from "fast-check"

/** The parts of a JSON Schema (draft 2020-12, as OpenAPI 3.1 has it) that the published API uses. */
export interface JsonSchema {
  readonly $ref?: string
  readonly type?: string | ReadonlyArray<string>
  readonly enum?: ReadonlyArray<unknown>
  readonly const?: unknown
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly oneOf?: ReadonlyArray<JsonSchema>
  readonly allOf?: ReadonlyArray<JsonSchema>
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: ReadonlyArray<string>
  readonly additionalProperties?: boolean | JsonSchema
  readonly items?: JsonSchema | false
  readonly prefixItems?: ReadonlyArray<JsonSchema>
  readonly pattern?: string
  readonly format?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly maxProperties?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly exclusiveMaximum?: number
  readonly examples?: ReadonlyArray<unknown>
}

/** Definitions under `#/components/schemas`, by name. */
export type Definitions = Readonly<Record<string, JsonSchema>>

const lengthGeneratedMax = 40

/** Values that fit a schema as a reader of `/openapi.json` would understand it. */
export const valuesOf = (schema: JsonSchema, definitions: Definitions): fc.Arbitrary<unknown> => {
  if (schema.$ref !== undefined)
    return valuesOf(definitions[schema.$ref.split("/").at(-1) ?? ""] ?? {}, definitions)
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  const merged = mergeAll(schema)
  const variants = merged.anyOf ?? merged.oneOf
  if (variants !== undefined) return fc.oneof(...variants.map((variant) => valuesOf(variant, definitions)))
  if (merged.examples !== undefined && merged.examples.length > 0) {
    return fc.oneof(fc.constantFrom(...merged.examples), ofType(merged, definitions))
  }
  return ofType(merged, definitions)
}

/** Checks of one schema may be spread over `allOf`. */
const mergeAll = (schema: JsonSchema): JsonSchema =>
  schema.allOf === undefined ? schema : Object.assign({}, schema, ...schema.allOf, { allOf: undefined })

const ofType = (schema: JsonSchema, definitions: Definitions): fc.Arbitrary<unknown> => {
  if (Array.isArray(schema.type)) {
    return fc.oneof(...schema.type.map((type: string) => ofType({ ...schema, type }, definitions)))
  }
  switch (schema.type) {
    case "string":
      return strings(schema)
    case "integer":
      return fc.integer(bounds(schema, -2_147_483_648, 2_147_483_647))
    case "number":
      return fc.double({ ...bounds(schema, -1e9, 1e9), noNaN: true, noDefaultInfinity: true })
    case "boolean":
      return fc.boolean()
    case "null":
      return fc.constant(null)
    case "array":
      return arrays(schema, definitions)
    case "object":
      return objects(schema, definitions)
    default:
      return fc.jsonValue({ maxDepth: 2 })
  }
}

const bounds = (schema: JsonSchema, min: number, max: number): { min: number; max: number } => ({
  min: schema.minimum ?? (schema.exclusiveMinimum === undefined ? min : schema.exclusiveMinimum + 1),
  max: schema.maximum ?? (schema.exclusiveMaximum === undefined ? max : schema.exclusiveMaximum - 1)
})

const strings = (schema: JsonSchema): fc.Arbitrary<string> => {
  const minLength = schema.minLength ?? 0
  const maxLength = Math.min(schema.maxLength ?? lengthGeneratedMax, Math.max(minLength, lengthGeneratedMax))
  if (schema.format === "email") return fc.emailAddress()
  if (schema.format === "date") {
    const days = fc.date({ min: new Date("1970-01-01"), max: new Date("2030-01-01"), noInvalidDate: true })
    return days.map((date) => date.toISOString().slice(0, 10))
  }
  if (schema.format === "date-time") {
    return fc
      .date({ min: new Date("1990-01-01"), max: new Date("2100-01-01"), noInvalidDate: true })
      .map((date) => date.toISOString())
  }
  const text = fc.string({ unit: "binary", minLength, maxLength })
  if (schema.pattern === undefined) return text
  const pattern = new RegExp(schema.pattern, "u")
  // A pattern that only forbids characters or words is met by plain text; one that gives a form is generated from.
  return /^\^(\[\^.*\]\*\$|\(\?!.*\))$/.test(schema.pattern)
    ? fc.string({ unit: "grapheme-ascii", minLength, maxLength }).filter((value) => pattern.test(value))
    : fc
        .stringMatching(pattern)
        .filter((value) => value.length >= minLength && value.length <= (schema.maxLength ?? 4096))
}

const arrays = (schema: JsonSchema, definitions: Definitions): fc.Arbitrary<unknown> => {
  const items = schema.items === undefined || schema.items === false ? {} : schema.items
  const minLength = schema.minItems ?? 0
  return fc.array(valuesOf(items, definitions), {
    minLength,
    maxLength: Math.min(schema.maxItems ?? 5, Math.max(5, minLength))
  })
}

const objects = (schema: JsonSchema, definitions: Definitions): fc.Arbitrary<unknown> => {
  const properties = Object.entries(schema.properties ?? {})
  const known = fc.record(
    Object.fromEntries(properties.map(([name, property]) => [name, valuesOf(property, definitions)])),
    { requiredKeys: [...(schema.required ?? [])], noNullPrototype: true }
  )
  if (properties.length > 0 || typeof schema.additionalProperties !== "object") return known
  return fc.dictionary(
    fc.string({ minLength: 1, maxLength: 20 }),
    valuesOf(schema.additionalProperties, definitions),
    {
      maxKeys: Math.min(schema.maxProperties ?? 5, 5),
      noNullPrototype: true
    }
  )
}

/** A good value spoiled by an unfriendly or mistaken caller: a field lost, of another type, huge, or nested. */
export const spoiled = (good: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.tuple(good, fc.jsonValue(), fc.nat(), fc.nat(4)).map(([value, other, index, way]) => {
    if (typeof value !== "object" || value === null || Array.isArray(value) || way === 0) return other
    const names = Object.keys(value)
    const name = names[index % Math.max(names.length, 1)] ?? "name"
    const { [name]: _dropped, ...rest } = value as Record<string, unknown>
    if (way === 1) return rest
    if (way === 2) return { ...rest, [name]: other }
    if (way === 3) return { ...rest, [name]: "x".repeat(5_000) }
    return JSON.parse(`{"__proto__": {"admin": true}, "constructor": 1, ${JSON.stringify(name)}: [[[[[]]]]]}`)
  })
