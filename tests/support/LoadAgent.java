/** Loads a Java agent into a running JVM: its pid, the agent's jar, and the agent's options. */
class LoadAgent {
    public static void main(String[] arguments) throws Exception {
        var machine = Attached.to(arguments[0]);
        try {
            machine.loadAgent(arguments[1], arguments[2]);
        } finally {
            machine.detach();
        }
    }
}
