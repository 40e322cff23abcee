import { Schema } from "effect"

/** One field of a frame or a body, as the reference shows it; nested ones by their way: `client.version`, `queue[].id`. */
export interface FieldRow {
  readonly path: string
  readonly isRequired: boolean
  /** such as `integer`, `"steer" | "follow_up"`, `array of string` */
  readonly type: string
  /** such as `1 to 128 characters`; empty where there is none */
  readonly limits: string
  readonly description: string
}

/** The parts of a JSON Schema that these rows are made from. Source: JSON Schema 2020-12. */
export interface Node {
  readonly $ref?: string
  readonly type?: string
  readonly enum?: ReadonlyArray<unknown>
  readonly anyOf?: ReadonlyArray<Node>
  readonly allOf?: ReadonlyArray<Node>
  readonly properties?: Readonly<Record<string, Node>>
  readonly required?: ReadonlyArray<string>
  readonly items?: Node | false
  readonly additionalProperties?: Node | boolean
  readonly examples?: ReadonlyArray<unknown>
  readonly default?: unknown
  readonly format?: string
  readonly description?: string
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly maxItems?: number
}

export type Definitions = Readonly<Record<string, Node>>

/** The name of the definition that a reference is to. */
export const refName = (ref: string): string => ref.split("/").at(-1) ?? ""

/** The node with what it refers to, and with what else holds of it, where that is not said of itself. */
export const resolved = (node: Node, definitions: Definitions): Node => {
  const { $ref, allOf, ...own } = node
  const more = (allOf ?? []).map((part) => resolved(part, definitions))
  const referred = $ref === undefined ? {} : resolved(definitions[refName($ref)] ?? {}, definitions)
  return Object.assign({}, referred, ...more, own)
}

const typeOf = (node: Node, definitions: Definitions): string => {
  if (node.enum !== undefined) return node.enum.map((value) => JSON.stringify(value)).join(" | ")
  if (node.anyOf !== undefined) {
    const alternatives = node.anyOf.map((one) => resolved(one, definitions))
    if (alternatives.filter(({ properties }) => properties !== undefined).length > 1) {
      return "one of the following"
    }
    return alternatives.map((one) => typeOf(one, definitions)).join(" | ")
  }
  if (node.type === "array") {
    const of = typeOf(resolved(node.items || {}, definitions), definitions)
    return of.includes(" | ") ? `array of (${of})` : `array of ${of}`
  }
  return node.type ?? "any JSON"
}

const between = (least: number | undefined, most: number | undefined, unit: string): string => {
  if (least !== undefined && most !== undefined) return `${least} to ${most}${unit}`
  if (most !== undefined) return `at most ${most}${unit}`
  return least !== undefined && least > 0 ? `at least ${least}${unit}` : ""
}

/** The bounds of what a number can be at all say nothing. */
const told = (bound: number | undefined): number | undefined =>
  bound === undefined || Math.abs(bound) >= Number.MAX_SAFE_INTEGER ? undefined : bound

const limitsOf = ({
  maxItems,
  maxLength,
  maximum,
  minItems,
  minLength,
  minimum,
  pattern = ""
}: Node): string => {
  const parts = [
    between(minLength, maxLength, " characters"),
    between(minItems, maxItems, " items"),
    between(told(minimum), told(maximum), ""),
    told(minimum) === 0 && told(maximum) === undefined ? "not negative" : "",
    pattern.startsWith("^[^\\u0000") ? "on one line" : pattern
  ]
  return parts.filter((part) => part !== "").join(", ")
}

/** The schema of a nullable value without its null. */
const valueOf = (node: Node, definitions: Definitions): Node => {
  const [only, ...others] = (node.anyOf ?? []).filter(({ type }) => type !== "null")
  return only === undefined || others.length > 0 ? node : resolved(only, definitions)
}

const rowsWithin = (node: Node, definitions: Definitions, path: string): ReadonlyArray<FieldRow> => {
  if (node.anyOf !== undefined) {
    return node.anyOf.flatMap((one) => rowsWithin(resolved(one, definitions), definitions, path))
  }
  if (node.type === "array") {
    return rowsWithin(resolved(node.items || {}, definitions), definitions, `${path}[]`)
  }
  const prefix = path === "" ? "" : `${path}.`
  return Object.entries(node.properties ?? {}).flatMap(([name, property]) => {
    const field = resolved(property, definitions)
    const row: FieldRow = {
      path: `${prefix}${name}`,
      isRequired: node.required?.includes(name) === true,
      type: typeOf(field, definitions),
      limits: limitsOf(valueOf(field, definitions)),
      description: field.description ?? valueOf(field, definitions).description ?? ""
    }
    return [row, ...rowsWithin(field, definitions, row.path)]
  })
}

/** The fields of a JSON Schema, nested ones behind their parents. */
export const rowsOfNode = (node: Node, definitions: Definitions): ReadonlyArray<FieldRow> =>
  rowsWithin(resolved(node, definitions), definitions, "")

/** The fields of a struct, nested ones behind their parents, and the description of the whole. */
export const fieldRowsOf = (
  schema: Schema.Constraint
): { readonly description: string; readonly rows: ReadonlyArray<FieldRow> } => {
  const document = Schema.toJsonSchemaDocument(schema)
  const definitions = document.definitions as Definitions
  const root = resolved(document.schema as Node, definitions)
  return { description: root.description ?? "", rows: rowsWithin(root, definitions, "") }
}
