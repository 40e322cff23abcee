const width = 96

/** JSON for people: a value that fits on a line stays on one. */
export const formatJson = (value: unknown, indent = ""): string => {
  const flat = flatJson(value)
  if (flat.length + indent.length <= width || typeof value !== "object" || value === null) return flat
  const inner = `${indent}  `
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"]
  const lines = Array.isArray(value)
    ? value.map((item) => `${inner}${formatJson(item, inner)}`)
    : Object.entries(value).map(
        ([name, item]) => `${inner}${JSON.stringify(name)}: ${formatJson(item, inner)}`
      )
  return `${open}\n${lines.join(",\n")}\n${indent}${close}`
}

const flatJson = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(flatJson).join(", ")}]`
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  const members = Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${flatJson(item)}`)
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`
}
