import { assert, describe, it, vi } from "@effect/vitest"
import { RecentFiles } from "#src/accounts/RecentFiles.ts"

const file = (id: string) => ({ id })

const bounds = { recentFiles: 3, recentFilesBytes: 100, recentFileMillis: 60_000 }

describe("files that were asked for a moment ago", () => {
  it("are few, the oldest go first, and so are their bytes", () => {
    const recent = new RecentFiles<{ readonly id: string }>(bounds)
    for (const id of ["a", "b", "c", "d"]) recent.put(file(id), recent.version)
    assert.isUndefined(recent.find("a"))
    assert.deepStrictEqual(recent.find("b"), file("b"))
    recent.putBytes("b", Buffer.alloc(60))
    recent.putBytes("c", Buffer.alloc(40))
    assert.strictEqual(recent.bytesOf("b")?.length, 60)
    recent.putBytes("d", Buffer.alloc(1))
    assert.isUndefined(recent.bytesOf("b"))
    assert.strictEqual(recent.bytesOf("c")?.length, 40)
    recent.putBytes("nowhere", Buffer.alloc(1))
    assert.isUndefined(recent.bytesOf("nowhere"))
  })

  it("are forgotten, and a row that was being read meanwhile is not kept", () => {
    const recent = new RecentFiles<{ readonly id: string }>(bounds)
    const { version } = recent
    recent.put(file("a"), version)
    recent.forget("a")
    assert.isUndefined(recent.find("a"))
    recent.put(file("a"), version)
    assert.isUndefined(recent.find("a"))
    recent.put(file("a"), recent.version)
    recent.putBytes("a", Buffer.alloc(100))
    recent.clear()
    recent.put(file("b"), recent.version)
    recent.putBytes("b", Buffer.alloc(100))
    assert.strictEqual(recent.bytesOf("b")?.length, 100)
    assert.isUndefined(recent.find("a"))
  })

  it("are read anew by one who asks shortly before their time is over, and for all others stay until then", () => {
    const clock = vi.spyOn(performance, "now")
    try {
      const recent = new RecentFiles<{ readonly id: string }>(bounds)
      clock.mockReturnValue(0)
      recent.put(file("a"), recent.version)
      recent.putBytes("a", Buffer.alloc(60))
      clock.mockReturnValue(bounds.recentFileMillis * 0.95)
      assert.isUndefined(recent.whole("a"))
      assert.isUndefined(recent.find("a"))
      assert.deepStrictEqual(recent.find("a"), file("a"))
      assert.strictEqual(recent.whole("a")?.bytes.length, 60)
      recent.put(file("a"), recent.version)
      clock.mockReturnValue(bounds.recentFileMillis * 1.5)
      assert.strictEqual(recent.whole("a")?.bytes.length, 60)
      recent.put(file("b"), recent.version)
      recent.putBytes("b", Buffer.alloc(41))
      assert.isUndefined(recent.find("a"))
      clock.mockReturnValue(bounds.recentFileMillis * 2.5)
      assert.isUndefined(recent.find("b"))
    } finally {
      clock.mockRestore()
    }
  })

  it("have their time", () => {
    const recent = new RecentFiles<{ readonly id: string }>({ ...bounds, recentFileMillis: 0 })
    recent.put(file("a"), recent.version)
    assert.isUndefined(recent.find("a"))
  })
})
