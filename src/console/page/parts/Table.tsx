import type { ComponentChildren } from "preact"
import { useId } from "preact/hooks"

interface Column<Row> {
  readonly title: string
  of(row: Row): ComponentChildren
  /** the part of the cell that a bar fills, from 0 to 1 */
  share?(row: Row): number
}

interface TableProps<Row> {
  readonly title: string
  /** undefined until the server has told */
  readonly rows: ReadonlyArray<Row> | undefined
  keyOf(row: Row): string
  /** the first one names the row */
  readonly columns: ReadonlyArray<Column<Row>>
  /** the text of a table without rows */
  readonly empty: string
}

/** A row for each item, with its figures and actions. */
export const Table = <Row,>({ columns, empty, keyOf, rows, title }: TableProps<Row>) => {
  const id = useId()
  const [first, ...others] = columns
  return (
    <section class="table" aria-labelledby={id}>
      <table>
        <caption id={id}>{title}</caption>
        <thead>
          <tr class="hint">
            {columns.map((column) => (
              <th key={column.title} scope="col">
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows?.map((row) => (
            <tr key={keyOf(row)}>
              {first !== undefined && <RowName {...first} row={row} />}
              {others.map((column) => (
                <td key={column.title}>{column.of(row)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows?.length === 0 && <p class="hint">{empty}</p>}
    </section>
  )
}

const RowName = <Row,>({ of, row, share }: Column<Row> & { readonly row: Row }) => {
  const name = of(row)
  return (
    <th scope="row" title={typeof name === "string" ? name : undefined}>
      {share !== undefined && <span class="bar" style={{ width: `${share(row) * 100}%` }} />}
      <span class="value">{name}</span>
    </th>
  )
}
