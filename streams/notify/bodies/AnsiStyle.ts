/**
 * Colours and faces of a terminal as classes: `f0`-`f15` and `b0`-`b15` are the 16 colours of letters and ground, all others
 * become the nearest of them, because a page takes its styles from its own sheet alone. Source: ECMA-48, 8.3.117 (SGR).
 */
export interface AnsiStyle {
  /** 0-15; -1: the page's own */
  readonly letters: number
  readonly ground: number
  /** names of classes */
  readonly faces: ReadonlyArray<string>
  readonly isInverse: boolean
}

export const plainStyle: AnsiStyle = { letters: -1, ground: -1, faces: [], isInverse: false }

/** The classes; "" for none. A ground has letters of its own that can be read on it, so it goes alone. */
export const classesOf = ({ faces, ground, isInverse, letters }: AnsiStyle): string => {
  const behind = isInverse ? letters : ground
  if (behind >= 0) return [...faces, `b${behind}`].join(" ")
  if (isInverse) return [...faces, "inverse"].join(" ")
  return (letters >= 0 ? [...faces, `f${letters}`] : faces).join(" ")
}

const faceOf: Readonly<Record<number, string>> = { 1: "bold", 2: "dim", 3: "italic", 4: "under", 9: "strike" }

const facesEndedBy: Readonly<Record<number, ReadonlyArray<string>>> = {
  22: ["bold", "dim"],
  23: ["italic"],
  24: ["under"],
  29: ["strike"]
}

/** More of them are no style that a program sets. */
const parametersMax = 64

/** The style after `ESC [ <parameters> m`. */
export const styleAfter = (style: AnsiStyle, parameters: string): AnsiStyle => {
  const codes = parameters.slice(0, parametersMax * 4).split(";", parametersMax)
  let next = style
  for (let index = 0; index < codes.length; index++) {
    const [code = "", ...colons] = (codes[index] ?? "").split(":")
    const number = code === "" ? 0 : Number(code)
    if (number === 38 || number === 48) {
      const isApart = colons.length === 0
      const rest = isApart ? codes.slice(index + 1, index + 5) : colons
      if (isApart) index += rest[0] === "5" ? 2 : rest[0] === "2" ? 4 : 0
      const color = extendedColor(rest.map(Number))
      if (color !== undefined) next = { ...next, [number === 38 ? "letters" : "ground"]: color }
    } else next = number === 4 && colons[0] === "0" ? withCode(next, 24) : withCode(next, number)
  }
  return next
}

const withCode = (style: AnsiStyle, code: number): AnsiStyle => {
  const face = faceOf[code]
  if (face !== undefined) return { ...style, faces: [...style.faces.filter((one) => one !== face), face] }
  const ended = facesEndedBy[code]
  if (ended !== undefined) return { ...style, faces: style.faces.filter((one) => !ended.includes(one)) }
  if (code === 0) return plainStyle
  if (code === 7 || code === 27) return { ...style, isInverse: code === 7 }
  if (code >= 30 && code <= 37) return { ...style, letters: code - 30 }
  if (code >= 90 && code <= 97) return { ...style, letters: code - 82 }
  if (code >= 40 && code <= 47) return { ...style, ground: code - 40 }
  if (code >= 100 && code <= 107) return { ...style, ground: code - 92 }
  if (code === 39) return { ...style, letters: -1 }
  return code === 49 ? { ...style, ground: -1 } : style
}

type Color = readonly [red: number, green: number, blue: number]

/** As xterm has them. */
const palette: ReadonlyArray<Color> = [
  [0, 0, 0],
  [205, 0, 0],
  [0, 205, 0],
  [205, 205, 0],
  [0, 0, 238],
  [205, 0, 205],
  [0, 205, 205],
  [229, 229, 229],
  [127, 127, 127],
  [255, 0, 0],
  [0, 255, 0],
  [255, 255, 0],
  [92, 92, 255],
  [255, 0, 255],
  [0, 255, 255],
  [255, 255, 255]
]

const nearest = ([red, green, blue]: Color): number => {
  const distances = palette.map(([r, g, b]) => (r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2)
  return distances.indexOf(Math.min(...distances))
}

/** `5;n` of 256 colours, or `2;r;g;b`, where the form with colons may name a space of colours before. */
const extendedColor = ([kind, ...values]: ReadonlyArray<number>): number | undefined => {
  if (!values.every((value) => value >= 0 && value <= 255)) return undefined
  if (kind === 5) {
    const [number] = values
    if (number === undefined || number < 16) return number
    if (number >= 232) return nearest(gray(8 + (number - 232) * 10))
    const cube = number - 16
    return nearest([step(Math.floor(cube / 36)), step(Math.floor(cube / 6) % 6), step(cube % 6)])
  }
  const [red, green, blue] = values.slice(-3)
  if (kind !== 2 || red === undefined || green === undefined || blue === undefined) return undefined
  return nearest([red, green, blue])
}

const gray = (value: number): Color => [value, value, value]

/** The six values of a colour in xterm's cube. */
const step = (value: number): number => (value === 0 ? 0 : 55 + value * 40)
