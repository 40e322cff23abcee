/** Fields by their names in lower case, each in the order of the text. */
export type Fields = ReadonlyMap<string, ReadonlyArray<string>>

/** Characters of a field that are read, fields of a group, and repetitions of one. */
const valueMax = 1_000
const fieldsMax = 100
const repeatedMax = 50

/** Fields as RFC 5322 section 2.2 writes headers, in groups with blank lines between them, the first so many. */
export const fieldGroupsOf = (text: string, groupsMax: number): ReadonlyArray<Fields> => {
  const groups: Array<Map<string, Array<string>>> = []
  let group: Map<string, Array<string>> | undefined
  let values: Array<string> | undefined
  for (const line of text.split(/\r?\n/)) {
    if (line.trim() === "") {
      group = undefined
      values = undefined
    } else if (/^[ \t]/.test(line)) {
      const last = values?.at(-1)
      if (values !== undefined && last !== undefined)
        values[values.length - 1] = `${last} ${line.trim()}`.slice(0, valueMax)
    } else {
      if (group === undefined) {
        if (groups.length === groupsMax) break
        group = new Map()
        groups.push(group)
      }
      values = addField(group, line)
    }
  }
  return groups
}

/** Adds the field of a line; answers the values of its name, the last of which may go on in the next line. */
const addField = (group: Map<string, Array<string>>, line: string): Array<string> | undefined => {
  const colon = line.indexOf(":")
  if (colon < 1 || colon > 100) return undefined
  const name = line.slice(0, colon).trim().toLowerCase()
  const values = group.get(name) ?? []
  if (values.length === repeatedMax || (values.length === 0 && group.size === fieldsMax)) return undefined
  values.push(
    line
      .slice(colon + 1)
      .trim()
      .slice(0, valueMax)
  )
  group.set(name, values)
  return values
}

/** The fields before the first blank line. */
export const fieldsOf = (text: string): Fields => fieldGroupsOf(text.trimStart(), 1)[0] ?? new Map()
