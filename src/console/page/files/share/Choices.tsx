import { useId } from "preact/hooks"

interface ChoicesProps<Value> {
  readonly legend: string
  readonly of: ReadonlyArray<{ readonly value: Value; readonly label: string; readonly hint?: string }>
  readonly chosen: Value | undefined
  onChosen(value: Value): void
}

/** One of a few. */
export const Choices = <Value extends string | number>({
  chosen,
  legend,
  of,
  onChosen
}: ChoicesProps<Value>) => {
  const name = useId()
  return (
    <fieldset class="choices">
      <legend>{legend}</legend>
      <div class="choices-row">
        {of.map(({ hint, label, value }) => (
          <label key={value} class="choice">
            <input type="radio" name={name} checked={value === chosen} onChange={() => onChosen(value)} />
            <span>
              {label}
              {hint !== undefined && <span class="hint"> {hint}</span>}
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}
