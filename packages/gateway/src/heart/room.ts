import type { Caller } from '@toolgate/core'
import type { MaybePromise } from '@toolgate/core/internal'
import type { ReadyBody, WarningRow } from '../model/rows.ts'
import type { Family } from '../telemetry/exposition.ts'
import type { Heart } from './heart.ts'
import type { Pages, Route } from './route.ts'

/**
 * One capability of the gateway: a folder that has its routes, its figures, its warnings and its end.
 *
 * A room knows the heart and the rooms that it needs, and no other.
 */
export interface Room<Service = unknown> {
  /** The name of its folder. */
  readonly name: string
  /** The rooms that it asks. They are opened before it, where the gateway has them. */
  readonly needs?: readonly Room[]
  /** Opens it for this gateway; `undefined` where the configuration does not ask for it. */
  open(heart: Heart, rooms: OpenedRooms): MaybePromise<OpenedRoom<Service> | undefined>
}

/** What a room may ask while it is open. */
export interface OpenedRooms {
  /** Returns what a needed room offers; `undefined` where the gateway lacks it. @throws {TypeError} for a room that is not needed */
  ask<Service>(room: Room<Service>): Service | undefined
  /** The metrics of all rooms: for a person, or for everybody, who sees no names of callers. */
  metrics(person: Caller | undefined): Promise<readonly Family[]>
  /** The warnings of all rooms. */
  warnings(): readonly WarningRow[]
  /** Whether this gateway may take calls, as all rooms see it. */
  health(withReasons: boolean): RoomHealth
  /** Applies the current revision in all rooms. */
  renew(): void
}

/** A part of the answer of `/readyz`. */
export interface RoomHealth {
  /** Calls are refused. */
  readonly isRefusing?: boolean
  readonly body: Partial<ReadyBody>
}

/** Returns figures for a person; without one for everybody, who sees no names of callers. */
export type Figures = (person: Caller | undefined) => MaybePromise<Family | readonly Family[]>

/** A room of a running gateway. Every member is optional: a room has what it needs. */
export interface OpenedRoom<Service = unknown> {
  /** What other rooms may ask it. */
  readonly service?: Service
  readonly routes?: readonly Route[]
  readonly pages?: readonly Pages[]
  /** Its figures. One that fails, or does not answer within 3 s, is left out. */
  readonly metrics?: readonly Figures[]
  warnings?(): readonly WarningRow[]
  health?(withReasons: boolean): RoomHealth
  /** Applies the current revision, in the turn in which the rules are replaced. */
  renew?(): void
  /** The servers have started, or failed to. */
  started?(): void
  /** Tells load balancers that the gateway is about to stop. It still takes calls. */
  announce?(): Promise<void>
  /** Waits for what is under way, for at most `ms`. */
  drain?(ms: number): Promise<void>
  /** Ends open streams, before the port closes. */
  endStreams?(): void
  close?(): MaybePromise<void>
  /** Writes what the last calls left, after the gate has closed. */
  settle?(): MaybePromise<void>
}

/** A row of the list of rooms. */
export interface ListedRoom {
  /** The part that is opened with the gateway. */
  readonly start?: Room
  /** The part for people. It is loaded and opened at the first request for the API or a page. */
  readonly people?: () => Promise<{ readonly room: Room }>
}
