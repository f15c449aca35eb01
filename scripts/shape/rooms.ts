import { importsAmong, sourcesOf } from './packages.ts'

/** A folder seen as a house: each folder and each file beside them is a room, and who imports stands above. */
export interface House {
  readonly rooms: number
  /** Rooms of the longest chain of imports; rooms that import each other are on one floor. */
  readonly floors: number
}

export function layersOf(folder: string): House {
  const roomOf = (file: string): string => file.slice(folder.length + 1).replace(/\/.*/, '')
  const files = sourcesOf(folder).filter((file) => file !== `${folder}/index.ts`)
  const below = new Map<string, Set<string>>(files.map((file) => [roomOf(file), new Set()]))
  for (const [file, imports] of importsAmong(files))
    for (const target of imports) if (roomOf(target) !== roomOf(file)) below.get(roomOf(file))?.add(roomOf(target))
  const heights = new Map<string, number>()
  const height = (room: string, above: readonly string[]): number => {
    const known = heights.get(room)
    if (known !== undefined) return known
    const next = [...(below.get(room) ?? [])].filter((one) => !above.includes(one))
    const found = 1 + Math.max(0, ...next.map((one) => height(one, [...above, room])))
    heights.set(room, found)
    return found
  }
  return { rooms: below.size, floors: Math.max(...[...below.keys()].map((room) => height(room, []))) }
}
