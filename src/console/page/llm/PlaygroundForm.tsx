import { Form, TextField } from "../parts/Form.tsx"
import type { Choice, Funds } from "./Funds.ts"
import { type Image, ImageField } from "./ImageField.tsx"
import { ModelPicker } from "./ModelPicker.tsx"

/** A question, as it was typed. */
export const emptyQuestion = {
  model: "",
  system: "",
  message: "",
  image: undefined as Image | undefined,
  temperature: "",
  maxTokens: ""
}

export type Question = Readonly<typeof emptyQuestion>

const optionalNumber = { type: "number", hint: "Optional", placeholder: "default" } as const

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

export const PlaygroundForm = (props: PlaygroundFormProps) => {
  const { isReady, isRunning, onChange, onRun, onStop, question } = props
  const text = (name: "system" | "message" | "temperature" | "maxTokens") => ({
    value: question[name],
    onInput: (typed: string): void => onChange({ [name]: typed })
  })
  return (
    <Form label="Playground" change={{ isBusy: isRunning }} onSubmit={onRun}>
      <ModelPicker {...props} value={question.model} onChange={(model) => onChange({ model })} />
      <TextField label="System" hint="Optional" rows={2} {...text("system")} />
      <TextField label="Message" rows={5} required {...text("message")} />
      <ImageField image={question.image} onChange={(image) => onChange({ image })} />
      <div class="numbers">
        <TextField
          label="Temperature"
          {...optionalNumber}
          min={0}
          max={2}
          step="any"
          {...text("temperature")}
        />
        <TextField
          label="Most tokens"
          {...optionalNumber}
          min={1}
          max={10_000_000}
          step={1}
          {...text("maxTokens")}
        />
      </div>
      <p class="actions">
        <button type="submit" class="primary" disabled={isRunning || !isReady}>
          Run
        </button>
        <button type="button" onClick={onStop} disabled={!isRunning}>
          Stop
        </button>
      </p>
    </Form>
  )
}
