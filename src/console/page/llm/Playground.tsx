import type { ModelList } from "#schemas/llm/Model.ts"
import { useState } from "preact/hooks"
import { useAnswer } from "../api/UseAnswer.ts"
import { Answer } from "./Answer.tsx"
import { type Choice, firstChoice, type Funds } from "./Funds.ts"
import { emptyQuestion, PlaygroundForm, type Question } from "./PlaygroundForm.tsx"
import { useCompletion } from "./UseCompletion.ts"

interface PlaygroundProps {
  /** undefined until the server has told */
  readonly funds: Funds | undefined
  /** a call may have cost, or credits were added */
  onOver(): void
}

/** Asks a model or a collection and shows the answer as it comes. */
export const Playground = ({ funds, onOver }: PlaygroundProps) => {
  const { data } = useAnswer<typeof ModelList.Type>("/api/v1/models")
  const [typed, setTyped] = useState(emptyQuestion)
  const { completion, run, stop } = useCompletion(onOver)
  const choices = (data?.data ?? []).filter(isForChat)
  const first = funds && firstChoice(choices, funds)
  const question = typed.model === "" ? { ...typed, model: first?.id ?? "" } : typed
  return (
    <div class="playground">
      <PlaygroundForm
        choices={choices}
        question={question}
        funds={funds}
        isReady={data !== undefined && funds !== undefined}
        isRunning={completion?.phase === "asking" || completion?.phase === "streaming"}
        onChange={(change) => setTyped({ ...question, ...change })}
        onRun={() => void run(bodyOf(question))}
        onStop={stop}
      />
      <Answer completion={completion} onAdded={onOver} />
    </div>
  )
}

/** Others make no text, and have other endpoints. */
const isForChat = (choice: Choice): boolean =>
  "collection" in choice || choice.architecture.output_modalities.includes("text")

const bodyOf = ({ image, maxTokens, message, model, system, temperature }: Question): object => ({
  model,
  messages: [
    ...(system.trim() === "" ? [] : [{ role: "system", content: system }]),
    {
      role: "user",
      content:
        image === undefined
          ? message
          : [
              { type: "text", text: message },
              { type: "image_url", image_url: { url: image.url } }
            ]
    }
  ],
  ...(temperature === "" ? {} : { temperature: Number(temperature) }),
  ...(maxTokens === "" ? {} : { max_tokens: Number(maxTokens) })
})
