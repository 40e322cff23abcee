/** The invalid field of an event, and the expectation. An answer says `<field>: <text>`. */
export class FieldFault {
  readonly field: string
  readonly text: string

  constructor(field: string, text: string) {
    this.field = field
    this.text = text
  }

  /** Cut, because the name of a property is the caller's and may be long. */
  get message(): string {
    return `${this.field}: ${this.text}`.slice(0, 300)
  }
}

export const expected = (field: string, what: string): FieldFault => new FieldFault(field, `expected ${what}`)

export const required = (field: string): FieldFault => new FieldFault(field, "is required")
