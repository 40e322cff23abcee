import { NumberField, TextArea } from "./Fields.tsx"
import type { Funds } from "./Funds.ts"
import { type Image, ImageField } from "./ImageField.tsx"
import { type Choice, ModelPicker } from "./ModelPicker.tsx"

/** A question, as it was typed. */
export interface Question {
  readonly model: string
  readonly system: string
  readonly message: string
  readonly image: Image | undefined
  readonly temperature: string
  readonly maxTokens: string
}

export const emptyQuestion: Question = {
  model: "",
  system: "",
  message: "",
  image: undefined,
  temperature: "",
  maxTokens: ""
}

interface PlaygroundFormProps {
  readonly choices: ReadonlyArray<Choice>
  readonly question: Question
  readonly funds: Funds | undefined
  readonly isReady: boolean
  readonly isRunning: boolean
  onChange(change: Partial<Question>): void
  onRun(): void
  onStop(): void
}

export const PlaygroundForm = ({
  choices,
  funds,
  isReady,
  isRunning,
  onChange,
  onRun,
  onStop,
  question
}: PlaygroundFormProps) => {
  const onSubmit = (event: Event): void => {
    event.preventDefault()
    onRun()
  }
  const text = (name: "system" | "message" | "temperature" | "maxTokens") => ({
    value: question[name],
    onInput: (typed: string): void => onChange({ [name]: typed })
  })
  return (
    <form aria-label="Playground" onSubmit={onSubmit}>
      <ModelPicker
        choices={choices}
        funds={funds}
        isReady={isReady}
        value={question.model}
        onChange={(model) => onChange({ model })}
      />
      <TextArea label="System" hint="Optional" rows={2} {...text("system")} />
      <TextArea label="Message" rows={5} isRequired {...text("message")} />
      <ImageField image={question.image} onChange={(image) => onChange({ image })} />
      <div class="numbers">
        <NumberField label="Temperature" max={2} step="any" {...text("temperature")} />
        <NumberField label="Most tokens" min={1} max={10_000_000} step={1} {...text("maxTokens")} />
      </div>
      <p class="actions">
        <button type="submit" class="primary" disabled={isRunning || !isReady}>
          Run
        </button>
        <button type="button" onClick={onStop} disabled={!isRunning}>
          Stop
        </button>
      </p>
    </form>
  )
}
