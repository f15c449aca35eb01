import type { Caller } from '@toolgate/core'
import type { MaybePromise } from '@toolgate/core/internal'
import type { JsonObject } from '@toolgate/values/json'
import type { Declaring, Method } from '../calls/method.ts'
import type { ReadyBody, WarningRow } from '../model/rows.ts'
import type { Family } from '../telemetry/exposition.ts'
import type { Heart } from './heart.ts'
import type { Pages, Route } from './route.ts'

/**
 * One capability of the gateway: a folder that has its routes, its methods, its metrics, its warnings and its shutdown.
 *
 * A room may use the heart and the rooms that it needs, and no others.
 */
export interface Room<Service = unknown> {
  /** The name of its folder. */
  readonly name: string
  /** The rooms that this room uses. Those that the gateway has are opened first. */
  readonly needs?: readonly Room[]
  /** Opens the room for this gateway. Returns `undefined` if the configuration does not need it. */
  open(heart: Heart, rooms: OpenedRooms): MaybePromise<OpenedRoom<Service> | undefined>
}

/** Access to other rooms while this room is open. */
export interface OpenedRooms {
  /**
   * Returns the service of a needed room; `undefined` if the gateway lacks it. @throws {TypeError} for a room that
   * `needs` does not name
   */
  ask<Service>(room: Room<Service>): Service | undefined
  /** The metrics of all rooms. Without a person, they contain no names of callers. */
  metrics(person: Caller | undefined): Promise<readonly Family[]>
  /** The methods of MCP that the rooms opened so far serve in the current revision. */
  methods(): readonly Method[]
  /** The capabilities that these rooms declare to MCP clients. */
  capabilities(client: Declaring): JsonObject
  /** The warnings of all rooms. */
  warnings(): readonly WarningRow[]
  /** Whether this gateway can accept calls, combined from all rooms. */
  health(withReasons: boolean): RoomHealth
  /** Applies the current revision in all rooms. */
  renew(): void
}

/** A part of the answer of `/readyz`. */
export interface RoomHealth {
  /** Whether calls are refused. */
  readonly isRefusing?: boolean
  readonly body: Partial<ReadyBody>
}

/** Returns metrics for a person. Without a person, they contain no names of callers. */
export type Figures = (person: Caller | undefined) => MaybePromise<Family | readonly Family[]>

/** A room of a running gateway. Every member is optional. */
export interface OpenedRoom<Service = unknown> {
  /** The functions that other rooms may use. */
  readonly service?: Service
  readonly routes?: readonly Route[]
  readonly pages?: readonly Pages[]
  /** The methods of MCP that it serves in the current revision. Called at the start and at each reload. */
  methods?(): readonly Method[]
  /** The capabilities of MCP that a client learns of when it connects. */
  capabilities?(client: Declaring): JsonObject
  /** Its metrics. A function that fails, or does not answer within 3 s, is left out. */
  readonly metrics?: readonly Figures[]
  warnings?(): readonly WarningRow[]
  health?(withReasons: boolean): RoomHealth
  /** Applies the current revision in the same turn in which the rules are replaced. */
  renew?(): void
  /** Called when every server has started or failed to start. */
  started?(): void
  /** Tells load balancers that the gateway is about to stop. The gateway still accepts calls. */
  announce?(): Promise<void>
  /** Waits up to `ms` milliseconds for running work. */
  drain?(ms: number): Promise<void>
  /** Ends open streams, before the port closes. */
  endStreams?(): void
  close?(): MaybePromise<void>
  /** Writes the remaining data of the last calls, after the gate has closed. */
  settle?(): MaybePromise<void>
}

/** A row of the list of rooms. */
export interface ListedRoom {
  /** The part that opens with the gateway. */
  readonly start?: Room
  /** The part for people. It is loaded and opened at the first request for the API or a page. */
  readonly people?: () => Promise<{ readonly room: Room }>
}
