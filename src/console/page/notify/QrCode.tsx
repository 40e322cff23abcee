import { useMemo } from "preact/hooks"
import { encode } from "uqr"

/** White around the code, in modules: readers find it by that. */
const quietModules = 4

/** A text for the camera of a phone, dark on white in either theme. */
export const QrCode = ({ label, text }: { readonly label: string; readonly text: string }) => {
  const { path, size } = useMemo(() => pathOf(text), [text])
  return (
    <svg
      class="qr"
      role="img"
      aria-label={label}
      viewBox={`0 0 ${size} ${size}`}
      shape-rendering="crispEdges"
    >
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  )
}

/** Dark modules that touch in a row are one rectangle. */
const pathOf = (text: string): { readonly path: string; readonly size: number } => {
  const { data, size } = encode(text, { ecc: "M", border: quietModules })
  const rows = data.map((row, y) =>
    Array.from(
      row
        .map((dark) => (dark ? "1" : "0"))
        .join("")
        .matchAll(/1+/g),
      (run) => {
        const { length } = run[0]
        return `M${run.index} ${y}h${length}v1h-${length}z`
      }
    ).join("")
  )
  return { path: rows.join(""), size }
}
