import type { JobModule } from "#src/infra/workers/Job.ts"

export type TestAsk =
  | { readonly _tag: "Echo"; readonly value: unknown }
  | { readonly _tag: "Bytes"; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly _tag: "Where" }
  | { readonly _tag: "Throw" }
  | { readonly _tag: "Spin"; readonly millis: number }
  | { readonly _tag: "Hoard" }
  | { readonly _tag: "HoardBytes" }
  | { readonly _tag: "Parse"; readonly text: Uint8Array<ArrayBuffer> }
  | { readonly _tag: "End" }
  | { readonly _tag: "Function" }

const run = (ask: TestAsk): ReturnType<JobModule> => {
  switch (ask._tag) {
    case "Echo":
      return { answer: ask.value }
    case "Bytes":
      for (let place = 0; place < ask.bytes.length; place += 4_096) ask.bytes[place] = 7
      return { answer: { length: ask.bytes.length, bytes: ask.bytes }, transfer: [ask.bytes.buffer] }
    case "Where":
      return { answer: { pid: process.pid, variables: Object.keys(process.env) } }
    case "Throw":
      throw new Error("as it was asked")
    case "Spin": {
      const end = performance.now() + ask.millis
      while (performance.now() < end);
      return { answer: "spun" }
    }
    case "Hoard": {
      const hoard: Array<Array<number>> = []
      for (;;) hoard.push(Array.from({ length: 100_000 }, (_, index) => index + 0.5))
    }
    case "HoardBytes": {
      const hoard: Array<Uint8Array> = []
      for (;;) hoard.push(new Uint8Array(8 * 1024 * 1024).fill(1))
    }
    case "Parse":
      return {
        answer: (JSON.parse(Buffer.from(ask.text.buffer).toString("latin1")) as Array<unknown>).length
      }
    case "End":
      return process.exit(0)
    case "Function":
      return { answer: () => "no function can be sent" }
  }
}

export const job: JobModule = (ask) => run(ask as TestAsk)
