package throttlesidecar;

import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import java.net.URL;
import org.junit.jupiter.api.Test;

/** The jar's packages depend on each other in one direction only. */
class PackagesTest {
    @Test
    void thereAreNoCycles() {
        URL jar = SidecarQuotaCallback.class.getProtectionDomain().getCodeSource().getLocation();
        JavaClasses classes = new ClassFileImporter().importUrl(jar);
        slices().matching("(**)").should().beFreeOfCycles().check(classes);
    }
}
