import { useRef, useState } from "preact/hooks"
import { Field } from "../parts/Form.tsx"
import { Toast } from "../parts/Toast.tsx"

export interface Image {
  readonly name: string
  /** `data:image/…;base64,…` */
  readonly url: string
}

interface ImageFieldProps {
  readonly image: Image | undefined
  onChange(image: Image | undefined): void
}

/** Larger ones are refused here, before they are read: they travel as text, a third longer. */
const bytesMax = 5 * 1024 * 1024

/** An image that goes with the message. It is read here and sent as it is. */
export const ImageField = ({ image, onChange }: ImageFieldProps) => {
  const input = useRef<HTMLInputElement>(null)
  const [problem, setProblem] = useState<string>()
  const read = async (file: File | undefined): Promise<void> => {
    setProblem(undefined)
    if (file === undefined) return onChange(undefined)
    if (file.size > bytesMax) {
      onChange(undefined)
      return setProblem("The image is over 5 MB.")
    }
    onChange({ name: file.name, url: await dataUrlOf(file) })
  }
  const remove = (): void => {
    if (input.current !== null) input.current.value = ""
    onChange(undefined)
  }
  return (
    <Field label="Image" hint="Optional">
      {(id) => (
        <>
          <input
            ref={input}
            id={id}
            type="file"
            accept="image/png,image/jpeg,image/webp,image/gif"
            onChange={(event) => void read(event.currentTarget.files?.[0])}
          />
          <Toast>{problem}</Toast>
          {image !== undefined && (
            <p class="image-chosen">
              <img src={image.url} alt={`Chosen: ${image.name}`} />
              <button type="button" class="plain" onClick={remove}>
                Remove the image
              </button>
            </p>
          )}
        </>
      )}
    </Field>
  )
}

const dataUrlOf = (file: File): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.addEventListener("load", () => resolve(String(reader.result)))
    reader.addEventListener("error", () => reject(reader.error ?? new Error("the image cannot be read")))
    reader.readAsDataURL(file)
  })
