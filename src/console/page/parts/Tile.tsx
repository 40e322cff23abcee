import type { ComponentChildren } from "preact"

interface TileProps {
  /** of the figure, for tests and programs */
  readonly name: string
  readonly label: string
  /** undefined until it is known */
  readonly value: ComponentChildren
  /** below it, such as the change */
  readonly note?: ComponentChildren
  /** the value is words */
  readonly isText?: boolean
}

/** A large figure, in a `dl.tiles`. */
export const Tile = ({ isText = false, label, name, note, value }: TileProps) => (
  <div class="tile">
    <dt>{label}</dt>
    <dd class={isText ? "tile-text" : "tile-value"} data-figure={name}>
      {value ?? "–"}
    </dd>
    {note !== undefined && <dd class="tile-change">{note}</dd>}
  </div>
)

/** Name, label and value of each; one without a value is left out. */
export type FactList = ReadonlyArray<readonly [string, string, string | undefined]>

/** Figures that describe a thing. */
export const Facts = ({ class: name = "", of }: { readonly class?: string; readonly of: FactList }) => (
  <dl class={`facts ${name}`}>
    {of.map(
      ([figure, label, value]) =>
        value !== undefined && (
          <div key={figure}>
            <dt>{label}</dt>
            <dd data-figure={figure}>{value}</dd>
          </div>
        )
    )}
  </dl>
)
