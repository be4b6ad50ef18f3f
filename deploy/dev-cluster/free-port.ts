import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";

/**
 * A TCP port of the loopback address that is free now. Only for programs that cannot listen on
 * port 0 themselves: another process may take it before they do, so their start is retried.
 */
export async function findFreeTcpPort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no port was given");
  return address.port;
}

/** The same for UDP. */
export async function findFreeUdpPort(): Promise<number> {
  const socket = createSocket("udp4");
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  const { port } = socket.address();
  socket.close();
  await once(socket, "close");
  return port;
}
