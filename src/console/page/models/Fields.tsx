import { useId } from "preact/hooks"

interface TextAreaProps {
  readonly label: string
  readonly hint?: string
  readonly rows: number
  readonly value: string
  readonly isRequired?: boolean
  onInput(text: string): void
}

/** Some lines of text. */
export const TextArea = ({ hint, isRequired = false, label, onInput, rows, value }: TextAreaProps) => {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>
        {label} {hint !== undefined && <span class="hint">{hint}</span>}
      </label>
      <textarea
        id={id}
        rows={rows}
        required={isRequired}
        value={value}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </div>
  )
}

interface NumberFieldProps {
  readonly label: string
  readonly min?: number
  readonly max: number
  readonly step: number | "any"
  readonly value: string
  onInput(text: string): void
}

/** A number that may be left out. */
export const NumberField = ({ label, max, min = 0, onInput, step, value }: NumberFieldProps) => {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>
        {label} <span class="hint">Optional</span>
      </label>
      <input
        id={id}
        type="number"
        min={min}
        max={max}
        step={step}
        value={value}
        placeholder="default"
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </div>
  )
}
