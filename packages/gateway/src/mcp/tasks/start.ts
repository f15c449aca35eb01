import { endsWithin } from '@toolgate/values'
import { callerAt, toResource } from '../../auth/credential.ts'
import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import { withLists } from '../../heart/views.ts'
import { ownerOf } from '../../model/owner.ts'
import { TASKS_EXTENSION } from '../../servers/asks/upstream-tasks.ts'
import { createTasks, type GatewayTasks } from './create-tasks.ts'
import { taskMethods } from './methods.ts'
import type { TaskOwner } from './task.ts'

/** The only earlier revision that supports tasks. */
const TASKS_VERSION = '2025-11-25'
const TASKS = { list: {}, cancel: {}, requests: { tools: { call: {} } } }

/** The tasks of a gateway. */
export interface ServedTasks extends GatewayTasks {
  /** Returns whether a server runs tasks now; without a name, whether any server does. */
  isRunBy(server?: string): boolean
}

/** Lets clients run calls as tasks, which last longer than their requests. */
export const tasks: Room<ServedTasks> = {
  name: 'tasks',
  open(heart) {
    const opened = openTasks(heart)
    const isRunBy = (server?: string) =>
      heart.servers.fleet.upstreams.some(({ name, state }) => state.tasks === true && (server ?? name) === name)
    return {
      service: { ...opened, isRunBy },
      methods: () => taskMethods(opened),
      capabilities({ era, protocolVersion }) {
        if (era === 'modern') return { extensions: { [TASKS_EXTENSION]: {} } }
        return protocolVersion === TASKS_VERSION && isRunBy() ? { tasks: TASKS } : {}
      },
      started: () => opened.resume(),
      drain: async (ms) => void (await endsWithin(opened.leave(), ms)),
    }
  },
}

function openTasks(heart: Heart): GatewayTasks {
  const { gate, stores, clock, catalog, servers, door, replica, onFault } = heart
  const { fleet } = servers
  const { authenticator, runs } = door
  return createTasks({
    state: stores.kept,
    audit: stores.audit,
    clock,
    gate: withLists(heart),
    names: catalog.lists,
    callerOf: ({ client }: TaskOwner, app: string | undefined) => {
      const isServed = app === undefined || gate.apps.list.some(({ name }) => name === app)
      return isServed ? callerAt(authenticator.current(client), toResource(app)) : undefined
    },
    readOwner: ({ client }) => (authenticator.current(client) ? undefined : runs.load(client)),
    cancelUpstream: (server, task, caller) => fleet.cancelTask(server, task, caller),
    isHere: async (server, caller) => {
      const owner = fleet.needsInstance(server) ? ownerOf(caller) : undefined
      return owner === undefined || (await replica?.elsewhere()?.homes.isHere(owner)) !== false
    },
    onFault,
  })
}
