import type { JobModule } from "#src/infra/workers/WorkerPool.ts"

export type TestAsk =
  | { readonly _tag: "Echo"; readonly value: unknown }
  | { readonly _tag: "Bytes"; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly _tag: "Throw" }
  | { readonly _tag: "Spin"; readonly millis: number }
  | { readonly _tag: "Hoard" }

const run = (ask: TestAsk): ReturnType<JobModule> => {
  switch (ask._tag) {
    case "Echo":
      return { answer: ask.value }
    case "Bytes":
      return { answer: ask.bytes.map((byte) => byte + 1), transfer: [] }
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
  }
}

export const job: JobModule = (ask) => run(ask as TestAsk)
