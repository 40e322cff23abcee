/** A set of words that are written with blanks between them. */
export const words = (text: string): ReadonlySet<string> => new Set(text.split(" "))

/** The arguments of a program, told apart. */
export interface Arguments {
  /** the words that are neither options nor values of options */
  readonly operands: ReadonlyArray<string>
  readonly options: ReadonlyArray<string>
}

/**
 * Tells options from operands, with the options that take the next word as their value. `stops`: options end at the first
 * operand, which is a command, and all that comes after it is an operand.
 */
export const argumentsOf = (
  rest: ReadonlyArray<string>,
  valued: ReadonlySet<string>,
  stops = false
): Arguments => {
  const operands: Array<string> = []
  const options: Array<string> = []
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at] ?? ""
    if (word === "--") return { operands: [...operands, ...rest.slice(at + 1)], options }
    if (word.startsWith("-") && word !== "-") {
      options.push(word)
      if (valued.has(word)) at++
    } else if (stops) return { operands: rest.slice(at), options }
    else operands.push(word)
  }
  return { operands, options }
}

export const hasOption = (options: ReadonlyArray<string>, names: ReadonlySet<string>): boolean =>
  options.some((option) => names.has(option.split("=")[0] ?? ""))
