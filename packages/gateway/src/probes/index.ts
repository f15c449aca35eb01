export { commandProbe, type CommandProbeOptions, type ProcessWatch } from './command-probe.ts'
export { envProbe, type EnvProbeOptions } from './probes.ts'
export { httpProbe, type HttpProbeOptions } from './network-probes.ts'
export { type ProbeOptions, tcpProbe, type TcpTarget } from './network-probes.ts'
