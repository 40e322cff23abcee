import type { ImportedSuppressions } from "#schemas/mail/Suppression.ts"
import { useId, useState } from "preact/hooks"
import { formatCount } from "../../figures/Format.ts"
import { Toast } from "../../parts/Toast.tsx"
import { useChange } from "../../parts/UseChange.ts"

interface SuppressionFilesProps {
  readonly path: string
  onAdded(): void
}

/** The suppressions as a CSV file, out and in. */
export const SuppressionFiles = ({ onAdded, path }: SuppressionFilesProps) => {
  const id = useId()
  const change = useChange()
  const [imported, setImported] = useState<ImportedSuppressions>()
  const send = (input: HTMLInputElement): void => {
    const file = input.files?.[0]
    if (file === undefined) return
    setImported(undefined)
    void change.run(async (ask) => {
      setImported(await ask(path, { method: "POST", body: { type: "text/csv", content: file } }))
      onAdded()
    })
    // The same file can be chosen again.
    input.value = ""
  }
  return (
    <section class="mail-files" aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>CSV</h2>
      <p>
        <a class="open-link" href={path} download="suppressions.csv">
          Download all
        </a>
      </p>
      <div class="field">
        <label for={id}>
          Add those of a file{" "}
          <span class="hint">UTF-8, at most 20,000 rows and 1 MiB; columns address, reason and note</span>
        </label>
        <input
          id={id}
          type="file"
          accept=".csv,text/csv"
          disabled={change.isBusy}
          onChange={({ currentTarget }) => send(currentTarget)}
        />
      </div>
      <Toast>{change.problem}</Toast>
      <div role="status">{imported !== undefined && <Imported of={imported} />}</div>
    </section>
  )
}

const Imported = ({ of: { added, errors, failed, known } }: { readonly of: ImportedSuppressions }) => (
  <>
    <p>
      {formatCount(added)} added, {formatCount(known)} were there, {formatCount(failed)} not taken.
    </p>
    <ul class="mail-lines" aria-label="Rows not taken">
      {errors.map(({ error, line }) => (
        <li key={line} class="problem">
          Line {formatCount(line)}: {error}
        </li>
      ))}
    </ul>
  </>
)
