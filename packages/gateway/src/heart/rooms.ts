import { runWithDeadline } from '@toolgate/values'
import type { Caller } from '@toolgate/core'
import type { JsonObject } from '@toolgate/values/json'
import type { Declaring, Method } from '../calls/method.ts'
import type { WarningRow } from '../model/rows.ts'
import type { Family } from '../telemetry/exposition.ts'
import { once } from '../util/lifecycle.ts'
import type { Heart } from './heart.ts'
import type { Figures, ListedRoom, OpenedRoom, OpenedRooms, Room, RoomHealth } from './room.ts'

const FIGURE_MS = 3000

/** The open rooms of a gateway, in the order of their list. Starting, reloading and stopping are loops over them. */
export class Rooms {
  readonly #heart: Heart
  readonly #listed: readonly ListedRoom[]
  readonly #opened: OpenedRoom[] = []
  readonly #services = new Map<string, unknown>()

  constructor(listed: readonly ListedRoom[], heart: Heart) {
    this.#listed = listed
    this.#heart = heart
  }

  /** Opens the rooms that start with the gateway. */
  async open(): Promise<void> {
    for (const { start } of this.#listed) if (start) await this.#open(start)
  }

  /** Opens and returns the rooms of people. Later calls return the same rooms. */
  readonly openForPeople = once(async (): Promise<readonly OpenedRoom[]> => {
    const loaded = await Promise.all(this.#listed.map(async ({ people }) => people?.()))
    const opened: OpenedRoom[] = []
    for (const one of loaded) {
      const room = one && (await this.#open(one.room))
      if (room) opened.push(room)
    }
    return opened
  })

  /** Returns the service of a room; `undefined` if the gateway lacks the room. */
  ask<Service>({ name }: Room<Service>): Service | undefined {
    // A service is stored under the name of its room, so it has the room's type.
    return this.#services.get(name) as Service | undefined
  }

  /** A function that fails, or does not answer within 3 s, is left out, because Prometheus waits only 10 s. */
  async metrics(person: Caller | undefined): Promise<readonly Family[]> {
    const figures = this.#opened.flatMap((room) => room.metrics ?? [])
    // All are read at once, so that a silent store does not hide the other metrics, which may raise the alarm.
    const read = await Promise.all(figures.map((of) => this.#read(of, person)))
    return read.flat()
  }

  async #read(of: Figures, person: Caller | undefined): Promise<Family | readonly Family[]> {
    try {
      return await runWithDeadline(async () => of(person), FIGURE_MS)
    } catch (error) {
      this.#heart.onFault(error)
      return []
    }
  }

  methods(): readonly Method[] {
    return this.#opened.flatMap((room) => room.methods?.() ?? [])
  }

  capabilities(client: Declaring): JsonObject {
    return Object.assign({}, ...this.#opened.map((room) => room.capabilities?.(client))) as JsonObject
  }

  warnings(): readonly WarningRow[] {
    return this.#opened.flatMap((room) => room.warnings?.() ?? [])
  }

  health(withReasons: boolean): RoomHealth {
    const all = this.#opened.flatMap((room) => room.health?.(withReasons) ?? [])
    const body = Object.assign({}, ...all.map((one) => one.body)) as RoomHealth['body']
    return { isRefusing: all.some(({ isRefusing }) => isRefusing), body }
  }

  renew(): void {
    for (const room of this.#opened) room.renew?.()
  }

  started(): void {
    for (const room of this.#opened) room.started?.()
  }

  async announce(): Promise<void> {
    await Promise.all(this.#opened.map(async (room) => room.announce?.()))
  }

  async drain(ms: number): Promise<void> {
    await Promise.all(this.#opened.map(async (room) => room.drain?.(ms)))
  }

  endStreams(): void {
    for (const room of this.#opened) room.endStreams?.()
  }

  /** Closes the rooms, last one first. */
  close(): Promise<void> {
    return this.#backwards((room) => room.close?.())
  }

  settle(): Promise<void> {
    return this.#backwards((room) => room.settle?.())
  }

  async #backwards(end: (room: OpenedRoom) => unknown): Promise<void> {
    for (const room of this.#opened.toReversed())
      try {
        await end(room)
      } catch (error) {
        this.#heart.onFault(error)
      }
  }

  async #open(room: Room): Promise<OpenedRoom | undefined> {
    const opened = await room.open(this.#heart, this.#seenBy(room))
    if (!opened) return undefined
    this.#opened.push(opened)
    if (opened.service !== undefined) this.#services.set(room.name, opened.service)
    return opened
  }

  #seenBy({ name, needs = [] }: Room): OpenedRooms {
    return {
      ask: (wanted) => {
        if (!needs.some((need) => need.name === wanted.name))
          throw new TypeError(`the room "${name}" asks "${wanted.name}", which is not among its needs`)
        return this.ask(wanted)
      },
      metrics: (person) => this.metrics(person),
      methods: () => this.methods(),
      capabilities: (client) => this.capabilities(client),
      warnings: () => this.warnings(),
      health: (withReasons) => this.health(withReasons),
      renew: () => this.renew(),
    }
  }
}
